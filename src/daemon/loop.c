/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"

enum { EVENTS_OF_TURN = 64 };

int64_t loop_now(const struct loop *loop)
{
    return loop->now != 0 ? loop->now : clock_read(CLOCK_BOOTTIME);
}

static void clock_rang(struct watch *watch, uint32_t events);

int loop_init(struct loop *loop, struct berth_error *error)
{
    *loop = (struct loop){
        .epoll = epoll_create1(EPOLL_CLOEXEC),
        .clock = {.descriptor = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
                  .ready = clock_rang},
        .clock_at = LOOP_NEVER,
    };
    list_init(&loop->timers);
    if (loop->epoll < 0 || loop->clock.descriptor < 0)
        return error_set_errno(error, errno, "cannot create an epoll descriptor and a timer");
    return loop_add(loop, &loop->clock, EPOLLIN, error);
}

void loop_finish(struct loop *loop)
{
    if (loop->epoll >= 0)
        close(loop->epoll);
    if (loop->clock.descriptor >= 0)
        close(loop->clock.descriptor);
    loop->epoll = -1;
    loop->clock.descriptor = -1;
}

int loop_add(struct loop *loop, struct watch *watch, uint32_t events, struct berth_error *error)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, watch->descriptor, &event) < 0)
        return error_set_errno(error, errno, "cannot watch a descriptor");
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

static void clock_rang(struct watch *watch, uint32_t events)
{
    struct loop *loop = container_of(watch, struct loop, clock);
    struct timer *timer = first_timer(loop);
    uint64_t times;

    (void)events;
    if (read(watch->descriptor, &times, sizeof(times)) == sizeof(times))
        loop->clock_at = LOOP_NEVER;
    while (timer != NULL && timer->at <= loop->now) {
        timer_set_at(loop, timer, LOOP_NEVER);
        timer->fire(timer);
        timer = first_timer(loop);
    }
}

/* Sets the clock to the first timer. One that is set too early is left: it rings for nothing once,
 * where moving it to and fro would cost a call in every turn. */
static void set_clock(struct loop *loop)
{
    const struct timer *timer = first_timer(loop);
    struct itimerspec setting = {0};

    if (timer == NULL || timer->at >= loop->clock_at)
        return;
    loop->clock_at = timer->at;
    /* Zero would take it away. */
    if (timer->at <= 0)
        setting.it_value.tv_nsec = 1;
    else
        setting.it_value = (struct timespec){timer->at / 1000000000, timer->at % 1000000000};
    timerfd_settime(loop->clock.descriptor, TFD_TIMER_ABSTIME, &setting, NULL);
}

/* Calls those of the turn that are to be first, or the rest. */
static void call_ready(struct loop *loop, const struct epoll_event *events, bool first)
{
    for (int i = 0; i < loop->ready_count; i++) {
        struct watch *watch = loop->ready[i];

        if (watch == NULL || watch->first != first)
            continue;
        loop->ready[i] = NULL;
        watch->ready(watch, events[i].events);
    }
}

static void take_turn(struct loop *loop, const struct loop_turn *turn)
{
    struct epoll_event events[EVENTS_OF_TURN];
    struct watch *ready[EVENTS_OF_TURN];
    int count;

    set_clock(loop);
    count = epoll_wait(loop->epoll, events, EVENTS_OF_TURN, -1);
    loop->now = clock_read(CLOCK_BOOTTIME);
    turn->after(turn->context);
    for (int i = 0; i < count; i++)
        ready[i] = events[i].data.ptr;
    loop->ready = ready;
    loop->ready_count = count < 0 ? 0 : count;
    call_ready(loop, events, true);
    call_ready(loop, events, false);
    loop->ready_count = 0;
}

void loop_run(struct loop *loop, const struct loop_turn *turn)
{
    for (;;) {
        turn->before(turn->context);
        if (loop->ended)
            break;
        take_turn(loop, turn);
    }
    loop->now = 0;
}
