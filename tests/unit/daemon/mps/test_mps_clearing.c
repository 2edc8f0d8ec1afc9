/* SPDX-License-Identifier: Apache-2.0
 *
 * Ending the processes of a control daemon, with made-up searches.
 */
#include "support/unit.h"

#include "daemon/mps/mps_clearing.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/text/text.h"
#include "daemon/core/pidfd.h"
#include "support/daemons/waiting_child.h"

enum { SLOT = 3, SOMEBODY = 1001 };

struct stage {
    struct loop loop;
    struct mps_settings settings;
    struct mps_process process;
    struct mps_clearing clearing;
    struct text calls; /* of the owner's callbacks */
    bool has_no_memory;
    int cleared;
};

static bool note_search(void *context, uint32_t slot, uint32_t uid, pid_t root)
{
    struct stage *stage = context;

    assert_int_equal(slot, SLOT);
    assert_int_equal(uid, SOMEBODY);
    text_append_format(&stage->calls, " search%s", root == 0 ? "" : "+root");
    return !stage->has_no_memory;
}

static void note_signal(void *context, uint32_t slot, int number)
{
    struct stage *stage = context;

    assert_int_equal(slot, SLOT);
    text_append_format(&stage->calls, " %s", number == SIGTERM ? "TERM" : "KILL");
}

static void note_forget(void *context, uint32_t slot)
{
    struct stage *stage = context;

    assert_int_equal(slot, SLOT);
    text_append(&stage->calls, " forget");
}

static void note_cleared(struct mps_clearing *clearing)
{
    container_of(clearing, struct stage, clearing)->cleared++;
}

static void ignore_end(struct watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    if (stage == NULL || loop_init(&stage->loop, NULL) < 0)
        return -1;
    stage->loop.now = DURATION_HOUR;
    stage->settings = (struct mps_settings){
        .loop = &stage->loop,
        .events = {.context = stage,
                   .search = note_search,
                   .signal = note_signal,
                   .forget = note_forget},
    };
    mps_process_init(&stage->process, &stage->loop);
    stage->process.end.ready = ignore_end;
    mps_clearing_init(&stage->clearing, &stage->settings, SLOT, &stage->process, note_cleared);
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    mps_clearing_stop(&stage->clearing);
    mps_process_forget(&stage->process);
    loop_finish(&stage->loop);
    text_finish(&stage->calls);
    free(stage);
    return 0;
}

/* Sets the time forward and fires the timer if it is due. */
static void go_on(struct stage *stage, int64_t duration)
{
    struct timer *timer = &stage->clearing.timer;

    stage->loop.now += duration;
    if (!list_is_linked(&timer->in_loop) || timer->at > stage->loop.now)
        return;
    loop_set_timer(&stage->loop, timer, LOOP_NEVER);
    timer->fire(timer);
}

/* Checks the callbacks since the last check. */
static void check_calls(struct stage *stage, const char *expected)
{
    assert_string_equal(text_string(&stage->calls), expected);
    text_clear(&stage->calls);
}

static void nothing_is_left(void **state)
{
    struct stage *stage = *state;

    mps_clearing_begin(&stage->clearing, SOMEBODY);
    check_calls(stage, " forget search");
    go_on(stage, DURATION_HOUR);
    check_calls(stage, "");
    assert_int_equal(stage->cleared, 0);
    mps_clearing_found(&stage->clearing, true);
    assert_int_equal(stage->cleared, 1);
    check_calls(stage, " forget");
}

static void processes_have_a_second_after_sigterm(void **state)
{
    struct stage *stage = *state;

    mps_clearing_begin(&stage->clearing, SOMEBODY);
    mps_clearing_found(&stage->clearing, false);
    check_calls(stage, " forget search TERM");
    go_on(stage, DURATION_SECOND - 1);
    check_calls(stage, "");
    go_on(stage, 1);
    check_calls(stage, " KILL");
    assert_int_equal(stage->cleared, 0);
    mps_clearing_found(&stage->clearing, true);
    assert_int_equal(stage->cleared, 1);
}

static void a_search_can_begin_in_the_next_turn(void **state)
{
    struct stage *stage = *state;

    mps_clearing_begin_soon(&stage->clearing, SOMEBODY);
    check_calls(stage, " forget");
    go_on(stage, 0);
    check_calls(stage, " search");
}

static void a_search_is_tried_again_for_want_of_memory(void **state)
{
    struct stage *stage = *state;

    stage->has_no_memory = true;
    mps_clearing_begin(&stage->clearing, SOMEBODY);
    go_on(stage, DURATION_SECOND);
    check_calls(stage, " forget search search");
    stage->has_no_memory = false;
    go_on(stage, DURATION_SECOND);
    go_on(stage, DURATION_HOUR);
    check_calls(stage, " search");
}

static void it_can_be_given_up(void **state)
{
    struct stage *stage = *state;

    mps_clearing_begin_soon(&stage->clearing, SOMEBODY);
    mps_clearing_stop(&stage->clearing);
    go_on(stage, DURATION_HOUR);
    check_calls(stage, " forget forget");
    mps_clearing_process_ended(&stage->clearing);
    assert_int_equal(stage->cleared, 0);
}

/* ---- The control daemon's own process ---- */

static pid_t use_process(struct stage *stage)
{
    pid_t pid = waiting_child_start();

    stage->process.child.pid = pid;
    stage->process.started = 1;
    assert_true(mps_process_take_over(&stage->process));
    assert_true(mps_process_confirm(&stage->process, 1));
    return pid;
}

static void the_search_begins_at_its_process(void **state)
{
    struct stage *stage = *state;
    pid_t pid = use_process(stage);

    mps_clearing_begin(&stage->clearing, SOMEBODY);
    check_calls(stage, " forget search+root");
    waiting_child_end(pid);
}

/* It is ended, and its end is waited for, even if the search found nothing. */
static void its_process_may_be_the_last(void **state)
{
    struct stage *stage = *state;
    pid_t pid = use_process(stage);
    struct text words = {0};
    int status;

    mps_clearing_begin(&stage->clearing, SOMEBODY);
    mps_clearing_process_ended(&stage->clearing);
    mps_clearing_found(&stage->clearing, true);
    assert_int_equal(stage->cleared, 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    mps_process_ended(&stage->process, &words);
    mps_clearing_process_ended(&stage->clearing);
    assert_int_equal(stage->cleared, 1);
    text_finish(&words);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_left),
        TEST(processes_have_a_second_after_sigterm),
        TEST(a_search_can_begin_in_the_next_turn),
        TEST(a_search_is_tried_again_for_want_of_memory),
        TEST(it_can_be_given_up),
        TEST(the_search_begins_at_its_process),
        TEST(its_process_may_be_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
