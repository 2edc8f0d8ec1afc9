/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "base/count.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "support/random.h"

enum { TIMERS = 50, STEPS = 20000 };

struct ticking {
    struct timer timer;
    struct loop *loop;
    struct timer *other;
    int64_t fired_at;
    int *order;
    int place;
};

static void fire(struct timer *timer)
{
    struct ticking *ticking = container_of(timer, struct ticking, timer);

    ticking->fired_at = clock_read(CLOCK_BOOTTIME);
    ticking->place = (*ticking->order)++;
}

static void nothing(void *context)
{
    (void)context;
}

static void check_order(const struct loop *loop, size_t count)
{
    int64_t before = INT64_MIN;
    size_t seen = 0;

    list_for_each (link, &loop->timers) {
        const struct timer *timer = container_of(link, struct timer, in_loop);

        assert_true(timer->at >= before);
        before = timer->at;
        seen++;
    }
    assert_int_equal(seen, count);
}

static void timers_stay_in_order_however_they_are_moved(void **state)
{
    struct test_random random = {7};
    struct timer timers[TIMERS] = {0};
    struct loop loop;

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    for (int step = 0; step < STEPS; step++) {
        struct timer *timer = &timers[test_random_below(&random, TIMERS)];
        bool set = test_random_below(&random, 3) != 0;
        size_t count = 0;

        loop_set_timer(&loop, timer, set ? (int64_t)test_random_below(&random, 100) : LOOP_NEVER);
        for (size_t i = 0; i < TIMERS; i++)
            count += list_is_linked(&timers[i].in_loop);
        assert_int_equal(list_is_linked(&timer->in_loop), set);
        check_order(&loop, count);
    }
    loop_finish(&loop);
}

static void end_loop(struct timer *timer)
{
    struct ticking *ticking = container_of(timer, struct ticking, timer);

    ticking->loop->ended = true;
}

static void timers_fire_in_order_and_not_before_their_time(void **state)
{
    int order = 0;
    struct loop loop;
    int64_t now = clock_read(CLOCK_BOOTTIME);
    struct ticking early = {.timer.fire = fire, .order = &order};
    struct ticking late = {.timer.fire = fire, .order = &order};
    struct ticking last = {.timer.fire = end_loop, .loop = &loop};

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    loop_set_timer(&loop, &last.timer, now + 3000000);
    loop_set_timer(&loop, &late.timer, now + 2000000);
    loop_set_timer(&loop, &early.timer, now + 1000000);
    loop_run(&loop, &(struct loop_turn){nothing, nothing, NULL});
    assert_int_equal(early.place, 0);
    assert_int_equal(late.place, 1);
    assert_true(early.fired_at >= now + 1000000);
    assert_true(late.fired_at >= now + 2000000);
    loop_finish(&loop);
}

/* Moves another timer to a later time, which the clock does not know when it fires, and takes some
 * time. */
static void put_off(struct timer *timer)
{
    struct ticking *ticking = container_of(timer, struct ticking, timer);
    int64_t now = loop_now(ticking->loop);

    while (clock_read(CLOCK_BOOTTIME) == now) {
    }
    assert_int_equal(loop_now(ticking->loop), now);
    loop_set_timer(ticking->loop, ticking->other, now + 2000000);
    ticking->fired_at = now;
}

static void a_timer_may_be_put_off(void **state)
{
    struct loop loop;
    int64_t now = clock_read(CLOCK_BOOTTIME);
    struct ticking last = {.timer.fire = end_loop, .loop = &loop};
    struct ticking first = {.timer.fire = put_off, .loop = &loop, .other = &last.timer};

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    loop_set_timer(&loop, &first.timer, now - 1);
    loop_set_timer(&loop, &last.timer, now + 1000);
    loop_run(&loop, &(struct loop_turn){nothing, nothing, NULL});
    assert_true(clock_read(CLOCK_BOOTTIME) >= first.fired_at + 2000000);
    /* Outside of turns, the time is the clock's. */
    assert_true(loop_now(&loop) >= first.fired_at + 2000000);
    loop_finish(&loop);
}

/* Two descriptors are ready at once. The first handler removes the other descriptor. */
struct rival {
    struct watch watch;
    struct loop *loop;
    struct rival *other;
    int calls;
};

static void called(struct watch *watch, uint32_t events)
{
    struct rival *rival = container_of(watch, struct rival, watch);

    assert_true((events & EPOLLIN) != 0);
    rival->calls++;
    loop_remove(rival->loop, &rival->other->watch);
    loop_remove(rival->loop, &rival->watch);
    rival->loop->ended = true;
}

static void what_is_removed_is_not_called_any_more(void **state)
{
    struct loop loop;
    struct rival rivals[2] = {0};
    int pipes[2][2];

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    for (size_t i = 0; i < COUNT(rivals); i++) {
        assert_int_equal(pipe(pipes[i]), 0);
        assert_int_equal(write(pipes[i][1], "x", 1), 1);
        rivals[i] = (struct rival){
            .watch = {.descriptor = pipes[i][0], .ready = called},
            .loop = &loop,
            .other = &rivals[1 - i],
        };
        assert_int_equal(loop_add(&loop, &rivals[i].watch, EPOLLIN, NULL), 0);
    }
    loop_run(&loop, &(struct loop_turn){nothing, nothing, NULL});
    assert_int_equal(rivals[0].calls + rivals[1].calls, 1);
    for (size_t i = 0; i < COUNT(rivals); i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    loop_finish(&loop);
}

static void note_order(struct watch *watch, uint32_t events)
{
    struct rival *rival = container_of(watch, struct rival, watch);

    (void)events;
    rival->calls = 1 + rival->other->calls;
    loop_remove(rival->loop, watch);
    rival->loop->ended = rival->calls == 2;
}

static void some_are_called_before_the_others(void **state)
{
    struct loop loop;
    int pipes[2][2];
    struct rival rivals[2];

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    for (size_t i = 0; i < COUNT(rivals); i++) {
        assert_int_equal(pipe(pipes[i]), 0);
        rivals[i] = (struct rival){
            .watch = {.descriptor = pipes[i][0], .first = i == 1, .ready = note_order},
            .loop = &loop,
            .other = &rivals[1 - i],
        };
        assert_int_equal(loop_add(&loop, &rivals[i].watch, EPOLLIN, NULL), 0);
        assert_int_equal(write(pipes[i][1], "x", 1), 1);
    }
    loop_run(&loop, &(struct loop_turn){nothing, nothing, NULL});
    assert_int_equal(rivals[1].calls, 1);
    assert_int_equal(rivals[0].calls, 2);
    for (size_t i = 0; i < COUNT(rivals); i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    loop_finish(&loop);
}

/* The clocks of a machine that a test suspends. They start before the real ones, which the timerfd
 * follows: each fake time has passed there, however short the machine's uptime. */
#define FAKE_START (-10000 * DURATION_SECOND)

static int64_t fake_awake;
static int64_t fake_suspended;

static int64_t read_fake_clock(clockid_t clock)
{
    return clock == CLOCK_MONOTONIC ? fake_awake : fake_awake + fake_suspended;
}

static void suspend_machine(void *context)
{
    (void)context;
    fake_awake += 10;
    fake_suspended = 3600 * DURATION_SECOND;
}

/* A deadline for a child does not pass while the machine sleeps. The time of a lease does. */
static void suspended_time_counts_only_where_it_should(void **state)
{
    int order = 0;
    struct loop loop;
    struct ticking lease = {.timer.fire = end_loop, .loop = &loop};
    struct ticking child = {.timer = {.fire = fire, .skips_suspend = true}, .order = &order};

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    fake_awake = FAKE_START;
    fake_suspended = 0;
    loop.read_clock = read_fake_clock;
    loop.suspended = 0;
    loop_set_timer(&loop, &child.timer, loop_now(&loop) + 5 * DURATION_SECOND);
    loop_set_timer(&loop, &lease.timer, loop_now(&loop) + 60 * DURATION_SECOND);
    loop_run(&loop, &(struct loop_turn){suspend_machine, nothing, NULL});
    assert_int_equal(order, 0);
    assert_true(list_is_linked(&child.timer.in_loop));
    assert_int_equal(child.timer.at, FAKE_START + 5 * DURATION_SECOND + fake_suspended);
    check_order(&loop, 1);
    loop_finish(&loop);
}

/* A descriptor whose data must be read before a timer fires. */
struct late_reader {
    struct watch watch;
    int *reads;
};

static void read_byte(struct watch *watch, uint32_t events)
{
    struct late_reader *reader = container_of(watch, struct late_reader, watch);
    char byte;

    (void)events;
    if (read(watch->descriptor, &byte, 1) == 1)
        ++*reader->reads;
}

static void stop_daemon(void *context)
{
    (void)context;
    fake_awake += 60 * DURATION_SECOND;
}

/* After SIGSTOP, what arrived meanwhile is read before deadlines pass, however much it is. */
static void data_comes_before_timers_after_a_pause(void **state)
{
    enum { READERS = 200 };
    struct late_reader readers[READERS];
    int ends[READERS][2];
    int reads = 0;
    struct loop loop;
    struct ticking deadline = {.timer.fire = end_loop, .loop = &loop};

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    fake_awake = FAKE_START;
    fake_suspended = 0;
    loop.read_clock = read_fake_clock;
    loop.suspended = 0;
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pipe(ends[i]), 0);
        readers[i] = (struct late_reader){{.descriptor = ends[i][0], .ready = read_byte}, &reads};
        assert_int_equal(loop_add(&loop, &readers[i].watch, EPOLLIN, NULL), 0);
        assert_int_equal(write(ends[i][1], "x", 1), 1);
    }
    loop_set_timer(&loop, &deadline.timer, loop_now(&loop) + 30 * DURATION_SECOND);
    loop_run(&loop, &(struct loop_turn){stop_daemon, nothing, NULL});
    assert_int_equal(reads, READERS);
    for (int i = 0; i < READERS; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
    loop_finish(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_stay_in_order_however_they_are_moved),
        cmocka_unit_test(timers_fire_in_order_and_not_before_their_time),
        cmocka_unit_test(a_timer_may_be_put_off),
        cmocka_unit_test(what_is_removed_is_not_called_any_more),
        cmocka_unit_test(some_are_called_before_the_others),
        cmocka_unit_test(suspended_time_counts_only_where_it_should),
        cmocka_unit_test(data_comes_before_timers_after_a_pause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
