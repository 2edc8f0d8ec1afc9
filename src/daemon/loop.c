/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

enum { EVENTS_OF_TURN = 64 };

int64_t loop_now(void)
{
    return clock_read(CLOCK_BOOTTIME);
}

int loop_init(struct loop *loop, struct berth_error *error)
{
    *loop = (struct loop){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    list_init(&loop->timers);
    return loop->epoll < 0 ? error_set_errno(error, errno, "epoll") : 0;
}

void loop_finish(struct loop *loop)
{
    if (loop->epoll >= 0)
        close(loop->epoll);
    loop->epoll = -1;
}

int loop_add(struct loop *loop, struct watch *watch, uint32_t events, struct berth_error *error)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, watch->descriptor, &event) < 0)
        return error_set_errno(error, errno, "epoll");
    return 0;
}

void loop_change(struct loop *loop, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    epoll_ctl(loop->epoll, EPOLL_CTL_MOD, watch->descriptor, &event);
}

void loop_remove(struct loop *loop, struct watch *watch)
{
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->descriptor, NULL);
    for (int i = 0; i < loop->ready_count; i++) {
        if (loop->ready[i] == watch)
            loop->ready[i] = NULL;
    }
}

void timer_set_at(struct loop *loop, struct timer *timer, int64_t at)
{
    struct list_link *place;

    list_remove(&timer->in_loop);
    timer->at = at;
    if (at == LOOP_NEVER)
        return;
    place = loop->timers.ends.previous;
    while (place != &loop->timers.ends && container_of(place, struct timer, in_loop)->at > at)
        place = place->previous;
    list_insert_before(place->next, &timer->in_loop);
}

static struct timer *first_timer(const struct loop *loop)
{
    struct list_link *link = list_first(&loop->timers);

    return link == NULL ? NULL : container_of(link, struct timer, in_loop);
}

static void fire_due(struct loop *loop)
{
    struct timer *timer = first_timer(loop);
    int64_t now = timer == NULL ? 0 : loop_now();

    while (timer != NULL && timer->at <= now) {
        timer_set_at(loop, timer, LOOP_NEVER);
        timer->fire(timer);
        timer = first_timer(loop);
    }
}

/* How long to wait; NULL: for ever. */
static struct timespec *time_left(const struct loop *loop, struct timespec *buffer)
{
    const struct timer *timer = first_timer(loop);
    int64_t left;

    if (timer == NULL)
        return NULL;
    left = timer->at - loop_now();
    if (left < 0)
        left = 0;
    *buffer = (struct timespec){left / 1000000000, left % 1000000000};
    return buffer;
}

void loop_run(struct loop *loop, const struct loop_turn *turn)
{
    while (!loop->ended) {
        struct epoll_event events[EVENTS_OF_TURN];
        struct watch *ready[EVENTS_OF_TURN];
        struct timespec left;
        int count;

        turn->before(turn->context);
        if (loop->ended)
            break;
        count = epoll_pwait2(loop->epoll, events, EVENTS_OF_TURN, time_left(loop, &left), NULL);
        turn->after(turn->context);
        for (int i = 0; i < count; i++)
            ready[i] = events[i].data.ptr;
        loop->ready = ready;
        loop->ready_count = count < 0 ? 0 : count;
        for (int i = 0; i < count; i++) {
            if (ready[i] != NULL)
                ready[i]->ready(ready[i], events[i].events);
        }
        loop->ready_count = 0;
        fire_due(loop);
    }
}
