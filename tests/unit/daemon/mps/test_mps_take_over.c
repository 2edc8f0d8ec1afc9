/* SPDX-License-Identifier: Apache-2.0
 *
 * Control daemons that an earlier daemon has started.
 */
#include "support/unit.h"

#include "daemon/mps/mps.h"

#include "support/daemons/mps_stage.h"

/* Runs a control daemon, and lets the daemon end. Returns the pid. */
static pid_t run_earlier_daemon(struct mps_stage *stage)
{
    pid_t pid = 0;

    mps_stage_need(stage, "site");
    mps_stage_run(stage, mps_stage_has_answered);
    mps_stage_turn(stage);
    assert_int_equal(mps_script_count("started", &pid), 1);
    assert_int_equal(stage->record.pid, pid);
    assert_int_equal(stage->record.started, stage->started);
    assert_true(stage->has_record);
    mps_destroy(stage->mps);
    assert_true(mps_script_runs(pid));
    stage->answers = 0;
    return pid;
}

/* Begins the next daemon with what the journal has. */
static void begin_next_daemon(struct mps_stage *stage)
{
    struct mps_site site = mps_stage_site(stage, "site");
    struct mps_record record = stage->record;
    struct mps_record known;

    record.pipe = site.pipe;
    record.log = site.log;
    mps_stage_create_mps(stage);
    assert_false(mps_find_record(stage->mps, 0, &known));
    assert_int_equal(mps_restore(stage->mps, 0, &record), 0);
    mps_site_finish(&site);
    assert_true(mps_find_record(stage->mps, 0, &known));
    assert_int_equal(known.pid, record.pid);
    assert_int_equal(known.user.uid, getuid());
    assert_string_equal(strrchr(known.pipe, '/'), "/site");
    mps_resume(stage->mps);
    assert_true(mps_is_present(stage->mps, 0));
}

static void kill_and_reap(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void it_is_taken_over(void **state)
{
    struct mps_stage *stage = *state;
    pid_t pid = run_earlier_daemon(stage);

    begin_next_daemon(stage);
    assert_int_equal(stage->asked_about, pid);
    assert_int_equal(mps_stage_need(stage, "site"), MPS_AWAITED);
    mps_stage_run(stage, mps_stage_has_answered);
    assert_int_equal(mps_script_count("started", NULL), 1);
    mps_stage_check_states(stage, "starting ready restored ready");
    stage->has_tenants = false;
    mps_stop(stage->mps, 0);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_false(mps_script_runs(pid));
    assert_int_equal(stage->last_signal, 0);
}

static void its_last_tenant_has_ended_meanwhile(void **state)
{
    struct mps_stage *stage = *state;
    pid_t pid = run_earlier_daemon(stage);

    begin_next_daemon(stage);
    stage->has_tenants = false;
    mps_stop(stage->mps, 0);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_false(mps_script_runs(pid));
    assert_int_equal(stage->last_signal, 0);
    assert_int_equal(stage->answers, 0);
    mps_stage_check_states(stage, "starting ready restored stopping stopped");
}

static void its_device_is_gone(void **state)
{
    struct mps_stage *stage = *state;
    pid_t pid = run_earlier_daemon(stage);

    stage->is_device_gone = true;
    begin_next_daemon(stage);
    stage->has_tenants = false;
    mps_stop(stage->mps, 0);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_false(mps_script_runs(pid));
}

/* A start that the journal lacks is learned. */
static void its_start_was_not_written_down(void **state)
{
    struct mps_stage *stage = *state;

    run_earlier_daemon(stage);
    stage->record.started = 0;
    begin_next_daemon(stage);
    mps_stage_run(stage, mps_stage_has_answered);
    mps_stage_turn(stage);
    assert_int_equal(stage->record.started, stage->started);
    assert_int_equal(mps_script_count("started", NULL), 1);
}

/* ---- It has ended meanwhile ---- */

static void it_is_started_again_for_its_tenants(void **state)
{
    struct mps_stage *stage = *state;

    kill_and_reap(run_earlier_daemon(stage));
    begin_next_daemon(stage);
    mps_stage_run(stage, mps_stage_has_answered);
    assert_int_equal(mps_script_count("started", NULL), 2);
    mps_stage_check_states(stage, "starting ready stopped starting ready");
}

static void nothing_is_started_without_tenants(void **state)
{
    struct mps_stage *stage = *state;

    kill_and_reap(run_earlier_daemon(stage));
    stage->has_tenants = false;
    begin_next_daemon(stage);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_int_equal(mps_script_count("started", NULL), 1);
    assert_false(stage->has_record);
}

/* ---- Its pid is another process's ---- */

static void another_process_is_left_alone(void **state)
{
    struct mps_stage *stage = *state;
    pid_t other = run_earlier_daemon(stage);

    mps_script_write("client", "exit 1");
    stage->record.started++;
    begin_next_daemon(stage);
    mps_stage_turn(stage);
    mps_script_write("client", "");
    mps_stage_run(stage, mps_stage_has_answered);
    assert_int_equal(mps_script_count("started", NULL), 2);
    assert_int_not_equal(stage->record.pid, other);
    assert_true(mps_script_runs(other));
    assert_int_equal(stage->root, 0);
}

/* An unconfirmed process is not signalled. */
static void nobody_knows_whose_the_process_is(void **state)
{
    struct mps_stage *stage = *state;
    pid_t other = run_earlier_daemon(stage);

    stage->is_never_answered = true;
    mps_script_write("client", "exit 1");
    begin_next_daemon(stage);
    stage->has_tenants = false;
    mps_stop(stage->mps, 0);
    mps_stage_run(stage, mps_stage_is_absent);
    assert_int_equal(stage->root, 0);
    assert_true(mps_script_runs(other));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, mps_stage_begin, mps_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_taken_over),
        TEST(its_last_tenant_has_ended_meanwhile),
        TEST(its_device_is_gone),
        TEST(its_start_was_not_written_down),
        TEST(it_is_started_again_for_its_tenants),
        TEST(nothing_is_started_without_tenants),
        TEST(another_process_is_left_alone),
        TEST(nobody_knows_whose_the_process_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
