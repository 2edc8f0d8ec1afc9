/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers of libevent with times in nanoseconds.
 */
#ifndef WEB_EVENT_TIMER_H
#define WEB_EVENT_TIMER_H

#include <event2/event.h>
#include <stdint.h>

#include "base/text/quantity.h"

static inline struct timeval event_timer_interval(int64_t time)
{
    return (struct timeval){.tv_sec = time / DURATION_SECOND,
                            .tv_usec = time % DURATION_SECOND / 1000};
}

/* Starts the timer, or restarts it if it is pending. */
static inline void event_timer_start(struct event *timer, int64_t time)
{
    struct timeval interval = event_timer_interval(time);

    evtimer_add(timer, &interval);
}

#endif
