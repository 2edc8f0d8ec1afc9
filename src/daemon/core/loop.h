/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop: watched descriptors and timers. All functions belong to one thread.
 *
 * A turn calls the ready descriptors first, then the timers: after a pause of the daemon (SIGSTOP,
 * a suspended machine) messages that have arrived in time count before the deadline that they meet.
 */
#ifndef DAEMON_CORE_LOOP_H
#define DAEMON_CORE_LOOP_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/list.h"

/* The time of a timer that is not set. */
#define LOOP_NEVER INT64_MAX

/* A watched descriptor and its callback; part of the watcher's own struct. */
struct watch {
    int descriptor;
    bool first; /* called before other ready descriptors of the turn */
    void (*ready)(struct watch *watch, uint32_t events); /* EPOLLIN and so on */
};

/* A time (CLOCK_BOOTTIME nanoseconds) and its callback. Zeroed memory is a timer that is not set.
 */
struct timer {
    struct list_link in_loop;
    int64_t at;
    bool skips_suspend; /* the time in which the machine is suspended does not count */
    void (*fire)(struct timer *timer);
};

struct loop {
    int epoll;
    struct watch clock; /* a timerfd; set to `clock_at` */
    int64_t clock_at;
    int64_t now;          /* the begin of this turn; 0: outside of turns */
    struct list timers;   /* soonest first */
    struct watch **ready; /* of this turn; NULL: called or removed */
    int ready_count;
    bool is_due;       /* the timerfd was ready in this turn */
    int postponed;     /* turns since the timers became due */
    int64_t suspended; /* how long the machine was suspended, as CLOCK_BOOTTIME counts it */
    bool ended;
    int64_t (*read_clock)(clockid_t clock); /* a test may set another one after loop_init() */
};

int loop_init(struct loop *loop, struct berth_error *error);
void loop_finish(struct loop *loop);

/* Watches for `events` (EPOLLIN and so on). Fails with BERTH_ERROR_IO or _MEMORY. */
int loop_add(struct loop *loop, struct watch *watch, uint32_t events, struct berth_error *error);
/* Changes the events. */
void loop_change(struct loop *loop, struct watch *watch, uint32_t events);
/* Stops watching. `ready` is not called again, even if the descriptor is ready in this turn. */
void loop_remove(struct loop *loop, struct watch *watch);

/* Sets or moves a timer; LOOP_NEVER removes it. */
void loop_set_timer(struct loop *loop, struct timer *timer, int64_t at);

/* Returns CLOCK_BOOTTIME. All calls of a turn return the same time, that of its begin. */
int64_t loop_now(const struct loop *loop);

/* Returns the processor time of this thread, to measure what a piece of work costs. */
int64_t loop_processor_time(const struct loop *loop);

/* Called around each wait. */
struct loop_turn {
    void (*before)(void *context); /* may set timers */
    void (*after)(void *context);  /* before the callbacks of the turn */
    void *context;
};

/* Waits and calls the callbacks, until `ended` is set. */
void loop_run(struct loop *loop, const struct loop_turn *turn);

#endif
