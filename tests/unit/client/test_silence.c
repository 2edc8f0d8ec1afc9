/* SPDX-License-Identifier: Apache-2.0 */
#include "client/silence.h"

#include "support/unit.h"

static const int64_t second = DURATION_SECOND;

/* Checks the next step and the time of the step after it. Times are in tenths of a second. */
static void check_step(struct silence *silence, int64_t tenth, enum silence_step step, int64_t next)
{
    assert_int_equal(silence_step(silence, tenth * second / 10), step);
    if (step == SILENCE_PING)
        silence_add_ping(silence, tenth * second / 10, 0);
    assert_int_equal(silence_next_time(silence), next < 0 ? INT64_MAX : next * second / 10);
}

static void a_request_is_judged_after_five_seconds(void **state)
{
    struct silence silence = {0};

    (void)state;
    silence_start(&silence, 0);
    silence_add_request(&silence, 10 * second);
    silence_add_request(&silence, 11 * second); /* the first counts */
    check_step(&silence, 100, SILENCE_WAIT, 125);
    check_step(&silence, 124, SILENCE_WAIT, 125);
    check_step(&silence, 125, SILENCE_PING, 150);
    check_step(&silence, 149, SILENCE_WAIT, 150);
    assert_false(silence.is_silent);
    check_step(&silence, 150, SILENCE_BEGIN, -1);
    check_step(&silence, 9000, SILENCE_WAIT, -1);
    assert_true(silence_add_message(&silence, 900 * second));
    assert_false(silence_add_message(&silence, 900 * second));
    check_step(&silence, 9000, SILENCE_WAIT, 9025);
}

static void an_acknowledged_wait_is_judged_after_five_seconds(void **state)
{
    struct silence silence = {0};

    (void)state;
    silence_start(&silence, 0);
    silence_add_request(&silence, 0);
    silence_add_message(&silence, second);
    check_step(&silence, 34, SILENCE_WAIT, 35);
    check_step(&silence, 35, SILENCE_PING, 60);
    silence_add_message(&silence, 4 * second);
    check_step(&silence, 60, SILENCE_WAIT, 65);
    check_step(&silence, 65, SILENCE_PING, 90);
    check_step(&silence, 90, SILENCE_BEGIN, -1);
}

/* A process that was stopped between the ping and its judgement waits for the answer to the ping.
 */
static void a_late_ping_has_its_time(void **state)
{
    struct silence silence = {0};

    (void)state;
    silence_start(&silence, 0);
    silence_add_request(&silence, 0);
    check_step(&silence, 700, SILENCE_PING, 725);
    check_step(&silence, 724, SILENCE_WAIT, 725);
}

static void a_starting_daemon_is_not_silent(void **state)
{
    struct silence silence = {0};

    (void)state;
    silence_start(&silence, 0);
    silence_add_request(&silence, 0);
    assert_int_equal(silence_step(&silence, 3 * second), SILENCE_PING);
    silence_add_ping(&silence, 3 * second, 9 * second);
    assert_int_equal(silence_next_time(&silence), 9 * second);
    check_step(&silence, 89, SILENCE_WAIT, 90);
    check_step(&silence, 90, SILENCE_BEGIN, -1);
}

static void a_deadline_ends_a_silent_wait_only(void **state)
{
    struct silence silence = {.deadline = 10 * second};

    (void)state;
    silence_start(&silence, 0);
    silence_add_request(&silence, 0);
    check_step(&silence, 25, SILENCE_PING, 50);
    check_step(&silence, 50, SILENCE_BEGIN, 100);
    check_step(&silence, 99, SILENCE_WAIT, 100);
    assert_int_equal(silence_step(&silence, 10 * second), SILENCE_EXPIRE);

    /* The daemon acknowledged, and is asked at the deadline. */
    silence_add_message(&silence, 9 * second);
    check_step(&silence, 95, SILENCE_WAIT, 100);
    check_step(&silence, 100, SILENCE_PING, 105);
    silence_add_message(&silence, 10 * second + 1);
    assert_int_equal(silence_step(&silence, 11 * second), SILENCE_WAIT);
    assert_int_equal(silence_next_time(&silence), 25 * second / 2 + 1);
}

static void a_short_deadline_leaves_time_for_an_answer(void **state)
{
    struct silence silence = {.deadline = second};

    (void)state;
    silence_start(&silence, 0);
    silence_add_request(&silence, 0);
    check_step(&silence, 10, SILENCE_PING, 15);
    check_step(&silence, 14, SILENCE_WAIT, 15);
    assert_int_equal(silence_step(&silence, 3 * second / 2), SILENCE_EXPIRE);
}

static void a_new_connection_starts_again(void **state)
{
    struct silence silence = {.deadline = 100 * second};

    (void)state;
    silence_start(&silence, 0);
    silence_add_request(&silence, 0);
    check_step(&silence, 25, SILENCE_PING, 50);
    check_step(&silence, 50, SILENCE_BEGIN, 1000);
    silence_start(&silence, 60 * second);
    silence_add_request(&silence, 60 * second);
    check_step(&silence, 600, SILENCE_WAIT, 625);
    /* It was reported already, and its end will be. */
    check_step(&silence, 625, SILENCE_PING, 1000);
    check_step(&silence, 650, SILENCE_WAIT, 1000);
    assert_true(silence_add_message(&silence, 66 * second));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_judged_after_five_seconds),
        cmocka_unit_test(an_acknowledged_wait_is_judged_after_five_seconds),
        cmocka_unit_test(a_late_ping_has_its_time),
        cmocka_unit_test(a_starting_daemon_is_not_silent),
        cmocka_unit_test(a_deadline_ends_a_silent_wait_only),
        cmocka_unit_test(a_short_deadline_leaves_time_for_an_answer),
        cmocka_unit_test(a_new_connection_starts_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
