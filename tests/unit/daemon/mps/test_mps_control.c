/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a control daemon, from its start to its end.
 */
#include "support/unit.h"

#include "daemon/mps/mps_control.h"

#include "base/count.h"
#include "support/daemons/mps_stage.h"

static void it_lives_as_long_as_its_tenants(void **state)
{
    struct mps_stage *stage = *state;
    pid_t pid = 0;

    assert_false(mps_is_busy(stage->mps));
    assert_int_equal(mps_stage_need(stage, "site"), MPS_AWAITED);
    assert_true(mps_is_busy(stage->mps));
    /* The journal names the process before it executes the program. */
    assert_true(stage->has_record && stage->record.pid > 0);
    assert_int_equal(mps_script_count("started", NULL), 0);
    assert_int_equal(mps_stage_need(stage, "site"), MPS_AWAITED);
    mps_stage_run(stage, mps_stage_has_answered);
    assert_int_equal(mps_script_count("started", &pid), 1);
    assert_int_equal(pid, stage->record.pid);
    assert_int_equal(mps_stage_need(stage, "site"), MPS_ANSWERS);
    assert_int_equal(stage->leavings, 0);
    assert_false(mps_is_ending(stage->mps, 0));

    stage->has_tenants = false;
    mps_stop(stage->mps, 0);
    assert_int_equal(stage->leavings, 1);
    assert_int_equal(stage->gones, 0);
    assert_true(mps_is_ending(stage->mps, 0));
    mps_stage_run(stage, mps_stage_is_absent);
    assert_int_equal(stage->gones, 1);
    assert_false(mps_script_runs(pid));
    assert_false(stage->has_record);
    assert_false(mps_is_busy(stage->mps));
    assert_int_equal(stage->last_signal, 0);
    mps_stage_check_states(stage, "starting ready stopping stopped");
}

static void another_site_must_wait(void **state)
{
    struct mps_stage *stage = *state;

    mps_stage_need(stage, "site");
    assert_int_equal(mps_stage_need(stage, "other"), MPS_BUSY);
    mps_stage_run(stage, mps_stage_has_answered);
    assert_int_equal(mps_stage_need(stage, "other"), MPS_BUSY);
    mps_stop(stage->mps, 0);
    /* The needs of the next one are known when the former one has ended. */
    assert_int_equal(mps_stage_need(stage, "other"), MPS_AWAITED);
}

/* Its user has caused too many lines. */
static void no_line_is_written_that_the_owner_forbids(void **state)
{
    struct mps_stage *stage = *state;

    stage->may_not_log = true;
    mps_stage_need(stage, "site");
    mps_stage_run(stage, mps_stage_has_answered);
    stage->may_not_log = stage->has_tenants = false;
    mps_stop(stage->mps, 0);
    mps_stage_run(stage, mps_stage_is_absent);
    mps_stage_check_states(stage, "stopping stopped");
}

/* ---- Failures ---- */

static void check_failure(struct mps_stage *stage, const char *why, const char *states)
{
    assert_int_equal(mps_stage_need(stage, "site"), MPS_AWAITED);
    assert_int_equal(stage->failures, 0);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_string_equal(stage->why, why);
    assert_int_equal(stage->failures, 1);
    assert_int_equal(stage->answers, 0);
    assert_int_equal(stage->gones, 1);
    assert_false(stage->has_record);
    mps_stage_check_states(stage, states);
}

static void a_control_daemon_that_ends_at_once(void **state)
{
    mps_script_write("daemon", "echo first; echo no such device; exit 3\n");
    check_failure(*state, "exit code 3: no such device", "starting failed stopped");
}

static bool has_started(const struct mps_stage *stage)
{
    (void)stage;
    return mps_script_count("started", NULL) == 1;
}

static void a_control_daemon_that_never_answers(void **state)
{
    struct mps_stage *stage = *state;

    mps_script_write("daemon", "echo hello; " MPS_SCRIPT_SERVES);
    mps_script_write("client", "exit 1");
    mps_stage_need(stage, "site");
    mps_stage_run(stage, has_started);
    mps_stage_skip(20 * DURATION_SECOND);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_string_equal(stage->why, "no answer within 20s: hello");
    assert_int_equal(stage->last_signal, SIGTERM);
    mps_stage_check_states(stage, "starting failed stopped");
}

static void a_suspended_machine_is_no_failure(void **state)
{
    struct mps_stage *stage = *state;

    mps_script_write("client", "[ -e $directory/go ]");
    mps_stage_need(stage, "site");
    mps_stage_run(stage, has_started);
    mps_stage_suspended = DURATION_HOUR;
    mps_script_write("go", "");
    mps_stage_run(stage, mps_stage_has_answered);
    mps_stage_check_states(stage, "starting ready");
}

static void a_missing_program(void **state)
{
    struct mps_stage *stage = *state;

    stage->has_program = false;
    check_failure(stage, "No such file or directory", "failed stopped");
}

/* A process that the next daemon would not know must not begin. */
static void a_journal_that_is_behind(void **state)
{
    struct mps_stage *stage = *state;

    stage->is_behind = true;
    check_failure(stage, "No space left on device", "failed stopped");
    assert_int_equal(mps_script_count("started", NULL), 0);
}

static void the_last_tenant_leaves_while_it_starts(void **state)
{
    struct mps_stage *stage = *state;

    mps_script_write("daemon", MPS_SCRIPT_SERVES);
    mps_stage_need(stage, "site");
    mps_stage_run(stage, has_started);
    stage->has_tenants = false;
    mps_stop(stage->mps, 0);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_int_equal(stage->failures, 0);
    assert_int_equal(stage->last_signal, SIGTERM);
    mps_stage_check_states(stage, "starting stopping stopped");
}

/* ---- Ends ---- */

static void stop(struct mps_stage *stage)
{
    stage->has_tenants = false;
    mps_stop(stage->mps, 0);
}

static bool has_quit_command(const struct mps_stage *stage)
{
    struct text commands = {0};
    bool has;

    (void)stage;
    mps_script_read("commands", &commands);
    has = strstr(text_string(&commands), "quit -t 2\n") != NULL;
    text_finish(&commands);
    return has;
}

static void it_quits_late(void **state)
{
    struct mps_stage *stage = *state;

    mps_stage_need(stage, "site");
    mps_stage_run(stage, mps_stage_has_answered);
    mps_script_write("client", "exit 0");
    stop(stage);
    mps_stage_run(stage, has_quit_command);
    mps_stage_skip(3 * DURATION_SECOND);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_int_equal(stage->last_signal, SIGTERM);
    mps_stage_check_states(stage, "starting ready stopping late stopped");
}

static void it_refuses_to_quit(void **state)
{
    struct mps_stage *stage = *state;

    mps_stage_need(stage, "site");
    mps_stage_run(stage, mps_stage_has_answered);
    mps_script_write("client", "exit 1");
    stop(stage);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_int_equal(stage->last_signal, SIGTERM);
    mps_stage_check_states(stage, "starting ready stopping stopped");
}

static bool has_signalled(const struct mps_stage *stage)
{
    return stage->last_signal != 0;
}

static void it_ignores_sigterm(void **state)
{
    struct mps_stage *stage = *state;

    mps_script_write("daemon", "trap '' TERM\n" MPS_SCRIPT_DAEMON);
    mps_stage_need(stage, "site");
    mps_stage_run(stage, mps_stage_has_answered);
    mps_script_write("client", "exit 1");
    stop(stage);
    mps_stage_run(stage, has_signalled);
    assert_int_equal(stage->last_signal, SIGTERM);
    mps_stage_skip(DURATION_SECOND);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_int_equal(stage->last_signal, SIGKILL);
}

/* A process that has not become its user yet is none that a search for the user's finds. */
static void its_own_process_counts_even_if_no_search_finds_it(void **state)
{
    struct mps_stage *stage = *state;
    pid_t pid = 0;

    stage->is_search_blind = true;
    mps_script_write("daemon", MPS_SCRIPT_SERVES);
    mps_stage_need(stage, "site");
    mps_stage_run(stage, has_started);
    mps_script_count("started", &pid);
    stop(stage);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_false(mps_script_runs(pid));
}

/* ---- Deaths ---- */

static void kill_daemon(void)
{
    pid_t pid = 0;

    assert_true(mps_script_count("started", &pid) > 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
}

static bool has_answered_again(const struct mps_stage *stage)
{
    return stage->answers == 2;
}

static bool is_pausing(const struct mps_stage *stage)
{
    return stage->gones == 2;
}

static void it_is_started_again(void **state)
{
    struct mps_stage *stage = *state;

    stage->is_awaited = false;
    mps_stage_need(stage, "site");
    mps_stage_run(stage, mps_stage_has_answered);
    kill_daemon();
    mps_stage_run(stage, has_answered_again);
    assert_int_equal(mps_script_count("started", NULL), 2);
    mps_stage_check_states(stage, "starting ready died stopped starting ready");

    /* After its second death there is a pause. A claim that needs it ends the pause. */
    kill_daemon();
    mps_stage_run(stage, is_pausing);
    assert_true(mps_is_present(stage->mps, 0));
    assert_false(mps_is_ending(stage->mps, 0));
    assert_true(stage->has_record);
    assert_int_equal(stage->record.pid, 0);
    assert_int_equal(mps_script_count("started", NULL), 2);
    assert_int_equal(mps_stage_need(stage, "site"), MPS_AWAITED);
    assert_true(stage->record.pid > 0);
}

static void it_is_not_started_again_without_tenants(void **state)
{
    struct mps_stage *stage = *state;

    mps_stage_need(stage, "site");
    mps_stage_run(stage, mps_stage_has_answered);
    stage->has_tenants = false;
    kill_daemon();
    mps_stage_run(stage, mps_stage_is_absent);
    mps_stage_check_states(stage, "starting ready died stopped");
}

static void its_last_tenant_leaves_in_a_pause(void **state)
{
    struct mps_stage *stage = *state;

    mps_script_write("daemon", "exit 1");
    stage->is_awaited = false;
    stage->keeps_tenants = true;
    mps_stage_need(stage, "site");
    mps_stage_run(stage, is_pausing);
    stage->has_tenants = false;
    mps_stop(stage->mps, 0);
    assert_false(mps_is_present(stage->mps, 0));
    assert_int_equal(stage->gones, 3);
    assert_false(stage->has_record);
}

static int waited_for; /* failures or commands */

static bool has_failed_again(const struct mps_stage *stage)
{
    return stage->gones == waited_for;
}

/* No pause before the second start, then 1 s, 2 s, ... and at most 60 s. */
static void pauses_grow(void **state)
{
    static const int64_t pauses[] = {0, 1, 2, 4, 8, 16, 32, 60, 60};
    struct mps_stage *stage = *state;

    mps_script_write("daemon", "exit 1");
    stage->is_awaited = false;
    stage->keeps_tenants = true;
    mps_stage_need(stage, "site");
    for (size_t i = 0; i < COUNT(pauses); i++) {
        waited_for = (int)i + 1;
        mps_stage_run(stage, has_failed_again);
        assert_int_equal(stage->failures, i + 1);
        if (pauses[i] == 0)
            continue;
        mps_stage_skip(pauses[i] * DURATION_SECOND - DURATION_SECOND / 2);
        mps_stage_turn(stage);
        assert_int_equal(stage->record.pid, 0);
        mps_stage_skip(DURATION_SECOND / 2);
    }
}

static bool has_commands(const struct mps_stage *stage)
{
    (void)stage;
    return mps_script_count("commands", NULL) >= waited_for;
}

/* A good answer of the program that asked the control daemon before says nothing. */
static void answers_to_old_questions_do_not_count(void **state)
{
    struct mps_stage *stage = *state;

    stage->keeps_tenants = true;
    mps_script_write("daemon", MPS_SCRIPT_DAEMON);
    mps_script_write("client", "while [ ! -e $directory/go ]; do sleep 0.01; done");
    mps_stage_need(stage, "site");
    waited_for = 1;
    mps_stage_run(stage, has_commands);
    kill_daemon();
    mps_stage_run(stage, has_failed_again);
    mps_script_write("client", "exit 1");
    mps_script_write("go", "");
    waited_for = 3;
    mps_stage_run(stage, has_commands);
    assert_int_equal(stage->answers, 0);
    mps_script_write("client", "");
    mps_stage_run(stage, mps_stage_has_answered);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, mps_stage_begin, mps_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_lives_as_long_as_its_tenants),
        TEST(another_site_must_wait),
        TEST(no_line_is_written_that_the_owner_forbids),
        TEST(a_control_daemon_that_ends_at_once),
        TEST(a_control_daemon_that_never_answers),
        TEST(a_suspended_machine_is_no_failure),
        TEST(a_missing_program),
        TEST(a_journal_that_is_behind),
        TEST(the_last_tenant_leaves_while_it_starts),
        TEST(it_quits_late),
        TEST(it_refuses_to_quit),
        TEST(it_ignores_sigterm),
        TEST(its_own_process_counts_even_if_no_search_finds_it),
        TEST(it_is_started_again),
        TEST(it_is_not_started_again_without_tenants),
        TEST(its_last_tenant_leaves_in_a_pause),
        TEST(pauses_grow),
        TEST(answers_to_old_questions_do_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
