/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop: descriptors that are watched and times at which something is due. One thread.
 */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* Never. */
#define LOOP_NEVER INT64_MAX

/* A descriptor and what happens when it is ready; lives in the struct of whoever watches it. */
struct watch {
    int descriptor;
    bool first; /* called before the others that are ready in the same turn */
    void (*ready)(struct watch *watch, uint32_t events); /* EPOLLIN and so on */
};

/* A time (CLOCK_BOOTTIME nanoseconds) and what happens then. Zeroed memory is one that is not set.
 */
struct timer {
    struct list_link in_loop;
    int64_t at;
    void (*fire)(struct timer *timer);
};

struct loop {
    int epoll;
    struct watch clock; /* a timerfd; set to `clock_at` */
    int64_t clock_at;
    int64_t now;          /* when this turn began; 0: outside of turns */
    struct list timers;   /* those that are set, soonest first */
    struct watch **ready; /* of this turn, not yet called */
    int ready_count;
    bool ended;
};

int loop_init(struct loop *loop, struct berth_error *error);
void loop_finish(struct loop *loop);

/* Watches for `events`; fails with BERTH_ERROR_IO or _MEMORY. */
int loop_add(struct loop *loop, struct watch *watch, uint32_t events, struct berth_error *error);
/* Changes what is watched for. */
void loop_change(struct loop *loop, struct watch *watch, uint32_t events);
/* Stops watching; `ready` is not called any more, also not in this turn. */
void loop_remove(struct loop *loop, struct watch *watch);

/* Sets or moves a timer; LOOP_NEVER takes it away. */
void timer_set_at(struct loop *loop, struct timer *timer, int64_t at);

/* CLOCK_BOOTTIME: within a turn when it began, so that all of it happens at one time. */
int64_t loop_now(const struct loop *loop);

/* What goes around each wait. */
struct loop_turn {
    void (*before)(void *context); /* may set timers */
    void (*after)(void *context);  /* before anything is called that has become ready */
    void *context;
};

/* Waits for something and does it, until `ended` is set. */
void loop_run(struct loop *loop, const struct loop_turn *turn);

#endif
