/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/runner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/string_list.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "daemon/core/loop.h"

/* More helpers than may run at once. */
enum { MANY = 2 * HELPERS_MAX };

struct stage {
    struct loop loop;
    struct runner *runner;
    struct timer timeout;
    size_t awaited; /* ends */
    size_t ended;
    struct runner_end last;
    char said[256];
    int order[MANY];
};

struct one {
    struct stage *stage;
    int number;
};

static void give_up(struct timer *timer)
{
    (void)timer;
    fail_msg("no end of the helpers within 30 s");
}

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    if (stage == NULL || loop_init(&stage->loop, NULL) < 0)
        return -1;
    stage->runner = runner_create(&stage->loop);
    stage->timeout.fire = give_up;
    *state = stage;
    return stage->runner == NULL ? -1 : 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    runner_destroy(stage->runner);
    loop_finish(&stage->loop);
    free(stage);
    return 0;
}

static void keep_end(void *context, const struct runner_end *ended)
{
    struct one *one = context;
    struct stage *stage = one->stage;

    stage->last = *ended;
    snprintf(stage->said, sizeof(stage->said), "%s", ended->last_line);
    stage->order[stage->ended++] = one->number;
    stage->loop.ended = stage->ended == stage->awaited;
}

static void do_nothing(void *context)
{
    (void)context;
}

static void await_ends(struct stage *stage, size_t count)
{
    stage->awaited = stage->ended + count;
    stage->loop.ended = false;
    loop_set_timer(&stage->loop, &stage->timeout, loop_now(&stage->loop) + 30 * DURATION_SECOND);
    loop_run(&stage->loop, &(struct loop_turn){do_nothing, do_nothing, NULL});
    loop_set_timer(&stage->loop, &stage->timeout, LOOP_NEVER);
}

static struct helper *start_words(struct one *one, const char *program, const char *script,
                                  struct runner_order order)
{
    struct string_list words = {0};
    struct helper *helper;

    assert_int_equal(string_list_append(&words, program), 0);
    assert_int_equal(string_list_append(&words, "-c"), 0);
    order.words = &words;
    order.last_word = script;
    if (order.deadline == 0)
        order.deadline = 30 * DURATION_SECOND;
    order.done = keep_end;
    order.context = one;
    helper = runner_start(one->stage->runner, &order);
    assert_non_null(helper);
    string_list_finish(&words);
    return helper;
}

static struct helper *start_script(struct one *one, const char *script)
{
    return start_words(one, "/bin/sh", script, (struct runner_order){0});
}

static void assert_described(const struct stage *stage, const char *expected)
{
    struct text words = {0};
    struct runner_end ended = stage->last;

    ended.last_line = stage->said;
    runner_describe_end(&ended, &words);
    assert_string_equal(text_string(&words), expected);
    text_finish(&words);
}

static void ends_are_described(void **state)
{
    struct stage *stage = *state;
    struct one one = {stage, 1};

    assert_false(runner_is_busy(stage->runner));
    start_script(&one, "echo first; echo out of memory; exit 1");
    assert_true(runner_is_busy(stage->runner));
    assert_int_equal(stage->ended, 0);
    await_ends(stage, 1);
    assert_described(stage, "exit code 1: out of memory");
    assert_false(runner_succeeded(&stage->last));
    assert_false(runner_is_busy(stage->runner));
    start_script(&one, "kill -TERM $$");
    await_ends(stage, 1);
    assert_described(stage, "signal 15 (Terminated)");
    start_words(&one, "/nonexistent/program", "", (struct runner_order){0});
    await_ends(stage, 1);
    assert_described(stage, "cannot be started: No such file or directory");
    start_script(&one, "true");
    await_ends(stage, 1);
    assert_true(runner_succeeded(&stage->last));
}

static void a_late_one_is_killed(void **state)
{
    struct stage *stage = *state;
    struct one one = {stage, 1};

    start_words(&one, "/bin/sh", "exec sleep 1000",
                (struct runner_order){.deadline = DURATION_SECOND / 20});
    await_ends(stage, 1);
    assert_int_equal(stage->last.outcome, HELPER_LATE);
    assert_described(stage, "no end within 50ms");
}

static void one_can_be_killed_while_it_runs_or_waits(void **state)
{
    struct stage *stage = *state;
    struct one ones[MANY];
    struct helper *helpers[MANY];

    for (int i = 0; i < MANY; i++) {
        ones[i] = (struct one){stage, i};
        helpers[i] = start_script(&ones[i], "exec sleep 1000");
    }
    for (int i = 0; i < MANY; i++)
        runner_kill(helpers[i]);
    assert_int_equal(stage->ended, 0);
    await_ends(stage, MANY);
    assert_int_equal(stage->last.outcome, HELPER_KILLED);
    assert_int_equal(stage->last.number, SIGKILL);
    assert_false(runner_is_busy(stage->runner));
}

/* Helpers of low priority leave room for the others. */
static void low_priority_waits(void **state)
{
    struct stage *stage = *state;
    struct one ones[HELPERS_LOW_PRIORITY_MAX + 1];
    struct helper *helpers[HELPERS_LOW_PRIORITY_MAX + 1];
    struct one urgent = {stage, 100};

    for (int i = 0; i <= HELPERS_LOW_PRIORITY_MAX; i++) {
        ones[i] = (struct one){stage, i};
        helpers[i] = start_words(&ones[i], "/bin/sh", "exec sleep 1000",
                                 (struct runner_order){.is_low_priority = true});
    }
    start_script(&urgent, "true");
    await_ends(stage, 1);
    assert_int_equal(stage->order[0], 100);
    for (int i = 0; i <= HELPERS_LOW_PRIORITY_MAX; i++)
        runner_kill(helpers[i]);
    await_ends(stage, HELPERS_LOW_PRIORITY_MAX + 1);
}

/* Without a descriptor the runner tries again, until the deadline. */
static void descriptors_that_ran_out_are_awaited(void **state)
{
    struct stage *stage = *state;
    struct one one = {stage, 1};
    struct rlimit before;
    struct rlimit tiny;
    int lowest = dup(0);

    assert_true(lowest >= 0);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    tiny = (struct rlimit){(rlim_t)lowest, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tiny), 0);
    start_script(&one, "true");
    assert_true(runner_is_busy(stage->runner));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    await_ends(stage, 1);
    assert_true(runner_succeeded(&stage->last));

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tiny), 0);
    start_words(&one, "/bin/sh", "true", (struct runner_order){.deadline = 1});
    await_ends(stage, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(stage->last.outcome, HELPER_NOT_STARTED);
    assert_int_equal(stage->last.number, EMFILE);
}

static void its_environment_is_what_the_order_says(void **state)
{
    struct stage *stage = *state;
    struct one one = {stage, 1};
    struct string_list variables = {0};

    assert_int_equal(string_list_append(&variables, "WORD=hello"), 0);
    setenv("SECRET", "told", 1);
    start_words(&one, "/bin/sh", "read a; echo $WORD-$SECRET-$a-$PATH",
                (struct runner_order){.environment = &variables, .input = "input\n"});
    string_list_finish(&variables);
    await_ends(stage, 1);
    assert_string_equal(stage->said, "hello--input-/usr/sbin:/usr/bin:/sbin:/bin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ends_are_described, begin, end),
        cmocka_unit_test_setup_teardown(a_late_one_is_killed, begin, end),
        cmocka_unit_test_setup_teardown(one_can_be_killed_while_it_runs_or_waits, begin, end),
        cmocka_unit_test_setup_teardown(low_priority_waits, begin, end),
        cmocka_unit_test_setup_teardown(descriptors_that_ran_out_are_awaited, begin, end),
        cmocka_unit_test_setup_teardown(its_environment_is_what_the_order_says, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
