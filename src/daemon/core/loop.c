/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"

/* The most ready descriptors of a turn, and the most turns that due timers wait for them. */
enum { EVENTS_OF_TURN = 64, POSTPONED_MAX = 64 };

/* A shorter difference between the clocks does not mean that the machine was suspended. */
#define SUSPEND_MIN (100 * INT64_C(1000000))

/* A timer that is later than this means that the daemon was paused. */
#define PAUSE_MIN INT64_C(1000000000)

/* A test may use a loop of zeroed memory. */
static int64_t read_clock(const struct loop *loop, clockid_t clock)
{
    return loop->read_clock != NULL ? loop->read_clock(clock) : clock_read(clock);
}

int64_t loop_now(const struct loop *loop)
{
    return loop->now != 0 ? loop->now : read_clock(loop, CLOCK_BOOTTIME);
}

int64_t loop_processor_time(const struct loop *loop)
{
    return read_clock(loop, CLOCK_THREAD_CPUTIME_ID);
}

static void note_due(struct watch *watch, uint32_t events);

/* Returns how long the machine has been suspended since its start. */
static int64_t read_suspended(const struct loop *loop)
{
    return loop->read_clock(CLOCK_BOOTTIME) - loop->read_clock(CLOCK_MONOTONIC);
}

int loop_init(struct loop *loop, struct berth_error *error)
{
    *loop = (struct loop){
        .epoll = epoll_create1(EPOLL_CLOEXEC),
        .clock = {.descriptor = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
                  .ready = note_due},
        .clock_at = LOOP_NEVER,
        .read_clock = clock_read,
    };
    loop->suspended = read_suspended(loop);
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

void loop_set_timer(struct loop *loop, struct timer *timer, int64_t at)
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

static void note_due(struct watch *watch, uint32_t events)
{
    struct loop *loop = container_of(watch, struct loop, clock);
    uint64_t times;

    (void)events;
    if (read(watch->descriptor, &times, sizeof(times)) == sizeof(times))
        loop->clock_at = LOOP_NEVER;
    loop->is_due = true;
}

static void fire_timers(struct loop *loop)
{
    struct timer *timer = first_timer(loop);

    loop->is_due = false;
    loop->postponed = 0;
    while (timer != NULL && timer->at <= loop->now) {
        loop_set_timer(loop, timer, LOOP_NEVER);
        timer->fire(timer);
        timer = first_timer(loop);
    }
}

/* Sets the timerfd to the first timer. A time that is too early is not changed: one needless
 * wake-up costs less than a system call in each turn. */
static void set_clock(struct loop *loop)
{
    const struct timer *timer = first_timer(loop);
    struct itimerspec setting = {0};

    if (timer == NULL || timer->at >= loop->clock_at)
        return;
    loop->clock_at = timer->at;
    /* Zero would disarm the timerfd. */
    if (timer->at <= 0)
        setting.it_value.tv_nsec = 1;
    else
        setting.it_value = (struct timespec){timer->at / 1000000000, timer->at % 1000000000};
    timerfd_settime(loop->clock.descriptor, TFD_TIMER_ABSTIME, &setting, NULL);
}

/* Calls the ready watches with this value of `first`. */
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

/* Moves the timers that do not count suspended time. */
static void skip_suspend(struct loop *loop)
{
    int64_t suspended = read_suspended(loop);
    int64_t new = suspended - loop->suspended;
    struct list moved;

    /* The two clocks are not read at the same instant. */
    if (new < SUSPEND_MIN)
        return;
    loop->suspended = suspended;
    list_init(&moved);
    list_for_each (link, &loop->timers) {
        if (container_of(link, struct timer, in_loop)->skips_suspend) {
            list_remove(link);
            list_append(&moved, link);
        }
    }
    while (!list_is_empty(&moved)) {
        struct timer *timer = container_of(list_first(&moved), struct timer, in_loop);

        loop_set_timer(loop, timer, timer->at + new);
    }
}

/* Returns whether the daemon was paused and more descriptors may be ready than one turn takes. */
static bool must_postpone(const struct loop *loop, int count)
{
    const struct timer *timer = first_timer(loop);

    return count == EVENTS_OF_TURN && loop->postponed < POSTPONED_MAX && timer != NULL &&
           loop->now - timer->at > PAUSE_MIN;
}

static void take_turn(struct loop *loop, const struct loop_turn *turn)
{
    struct epoll_event events[EVENTS_OF_TURN];
    struct watch *ready[EVENTS_OF_TURN];
    int count;

    set_clock(loop);
    count = epoll_wait(loop->epoll, events, EVENTS_OF_TURN, loop->is_due ? 0 : -1);
    loop->now = loop->read_clock(CLOCK_BOOTTIME);
    skip_suspend(loop);
    turn->after(turn->context);
    for (int i = 0; i < count; i++)
        ready[i] = events[i].data.ptr;
    loop->ready = ready;
    loop->ready_count = count < 0 ? 0 : count;
    call_ready(loop, events, true);
    call_ready(loop, events, false);
    loop->ready_count = 0;
    if (loop->is_due && must_postpone(loop, count))
        loop->postponed++;
    else if (loop->is_due)
        fire_timers(loop);
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
