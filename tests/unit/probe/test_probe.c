/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "probe/probe.h"

#include <poll.h>
#include <sys/wait.h>

#include "base/system/clock.h"
#include "support/assert_error.h"
#include "support/hardware/scripted_probe.h"
#include "support/programs/pools.h"
#include "support/temporary_directory.h"

#define ONE_DEVICE "{\"devices\": [{\"id\": \"nvidia0\", \"name\": \"A\"}]}"
#define HANGS      "{\"behaviour\": \"hang\"}"

/* Sends a request with a deadline of 100 ms. */
static int look(struct probe *probe, struct machine_report *ret_report, struct berth_error *error)
{
    struct probe_request request = {.deadline = 100 * MILLISECOND};

    return probe_query(probe, &request, ret_report, error);
}

/* Sends a request without a tight deadline, for a busy machine. */
static void check_answers(struct probe *probe)
{
    struct probe_request request = {.deadline = 30 * SECOND};
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_report report;

    assert_works(probe_query(probe, &request, &report, &error), &error);
    assert_int_equal(report.machine.devices.count, 1);
    assert_string_equal(report.machine.devices.items[0].name, "A");
    assert_int_equal(report.listed, 0x1f);
    machine_report_finish(&report);
}

static void one_probe_answers_many_looks(void **state)
{
    struct probe probe = {0};

    probe_script(*state, ONE_DEVICE);
    for (int i = 0; i < 3; i++)
        check_answers(&probe);
    assert_int_equal(probe_count("start "), 1);
    assert_int_equal(probe_count("ask "), 3);
    probe_finish(&probe);
    await(!probe_runs());
}

static void it_is_no_child_of_ours(void **state)
{
    struct probe probe = {0};

    probe_script(*state, ONE_DEVICE);
    check_answers(&probe);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
    probe_finish(&probe);
    await(!probe_runs());
}

static void a_probe_that_hangs_is_given_up_in_time(void **state)
{
    struct probe probe = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_report report;
    int64_t began;

    probe_script(*state, ONE_DEVICE);
    check_answers(&probe); /* waits until the probe runs */
    probe_says(HANGS);
    began = clock_now();
    assert_fails(look(&probe, &report, &error), BERTH_ERROR_TIMED_OUT, &error,
                 "cannot read the hardware: berth-probe does not answer in time");
    assert_true(clock_now() - began >= 100 * MILLISECOND + PROBE_DEADLINE_GRACE);
    assert_false(probe.is_open);
    await(!probe_runs());
    probe_says(ONE_DEVICE);
    check_answers(&probe);
    assert_int_equal(probe_count("start "), 2);
    probe_finish(&probe);
    await(!probe_runs());
}

static void a_probe_that_dies_is_noticed_at_once(void **state)
{
    struct probe probe = {0};
    struct probe_request request = {.deadline = 60 * SECOND};
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_report report;

    probe_script(*state, "{\"behaviour\": \"die\"}");
    assert_fails(probe_query(&probe, &request, &report, &error), BERTH_ERROR_IO, &error,
                 "cannot read the hardware: berth-probe has ended");
    assert_false(probe.is_open);
    await(!probe_runs());
}

static void garbage_is_no_answer(void **state)
{
    struct probe probe = {0};
    struct probe_request request = {.deadline = 60 * SECOND};
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_report report;

    probe_script(*state, "{\"behaviour\": \"garbage\"}");
    assert_int_equal(probe_query(&probe, &request, &report, &error), BERTH_ERROR_SYNTAX);
    assert_memory_equal(error.message, "berth-probe: ", 13);
    assert_false(probe.is_open);
    await(!probe_runs());
}

static void an_answer_to_another_request_is_not_taken(void **state)
{
    struct probe probe = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_report report;

    probe_script(*state, ONE_DEVICE);
    check_answers(&probe);
    probe_says("{\"behaviour\": \"old number\", \"devices\": [{\"id\": \"nvidia0\"}]}");
    assert_int_equal(look(&probe, &report, &error), BERTH_ERROR_TIMED_OUT);
    await(!probe_runs());
}

static void answers_can_be_waited_for_by_the_caller(void **state)
{
    struct probe probe = {0};
    struct probe_request request = {.deadline = 30 * SECOND};
    struct probe_answer answer;
    int code = 0;

    probe_script(*state, ONE_DEVICE);
    assert_int_equal(probe_start(&probe, NULL), 0);
    assert_int_equal(probe_send(&probe, &request, NULL), 0);
    assert_int_equal(request.number, 1);
    while (code == 0) {
        struct pollfd waiting = {.fd = probe.channel.descriptor, .events = POLLIN};

        assert_int_equal(poll(&waiting, 1, 60000), 1);
        code = probe_receive(&probe, &answer, NULL);
    }
    assert_int_equal(code, 1);
    assert_int_equal(answer.number, 1);
    machine_report_finish(&answer.report);
    assert_int_equal(probe_receive(&probe, &answer, NULL), 0);
    probe_finish(&probe);
    await(!probe_runs());
}

static void a_program_that_is_not_there(void **state)
{
    struct probe probe = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_report report;

    (void)state;
    assert_int_equal(setenv("BERTH_PROBE", "/nowhere/probe", 1), 0);
    assert_fails(look(&probe, &report, &error), BERTH_ERROR_NOT_FOUND, &error,
                 "cannot start /nowhere/probe: No such file or directory");
    probe_finish(&probe);
}

static void a_program_may_be_named_from_here(void **state)
{
    struct probe probe = {0};
    char *program;

    probe_script(*state, ONE_DEVICE);
    program = source_path("tests/support/daemons/scripted_probe.py");
    assert_int_equal(symlink(program, "probe"), 0);
    assert_int_equal(setenv("BERTH_PROBE", "probe", 1), 0);
    check_answers(&probe);
    probe_finish(&probe);
    await(!probe_runs());
    free(program);
}

/* A process that was forked in the meantime has a copy of the pipe. This must not keep the probe
 * alive. */
static void a_copy_of_the_pipe_does_not_keep_it(void **state)
{
    struct probe probe = {0};
    int copy;

    probe_script(*state, ONE_DEVICE);
    check_answers(&probe);
    copy = dup(probe.channel.descriptor);
    probe_finish(&probe);
    await(!probe_runs());
    close(copy);
}

static void the_deadline_is_that_of_the_environment(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int64_t deadline = 1;

    (void)state;
    unsetenv("BERTH_PROBE_DEADLINE");
    assert_int_equal(probe_deadline(&deadline, &error), 0);
    assert_int_equal(deadline, PROBE_DEADLINE_DEFAULT);
    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "250ms", 1), 0);
    assert_int_equal(probe_deadline(&deadline, &error), 0);
    assert_int_equal(deadline, 250 * MILLISECOND);
    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "soon", 1), 0);
    assert_int_equal(probe_deadline(&deadline, &error), BERTH_ERROR_SYNTAX);
    assert_memory_equal(error.message, "BERTH_PROBE_DEADLINE: ", 22);
    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "1h", 1), 0);
    assert_int_equal(probe_deadline(&deadline, &error), BERTH_ERROR_RANGE);
    assert_int_equal(deadline, 250 * MILLISECOND);
    unsetenv("BERTH_PROBE_DEADLINE");
}

#define in_directory(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_directory(one_probe_answers_many_looks),
        in_directory(it_is_no_child_of_ours),
        in_directory(a_probe_that_hangs_is_given_up_in_time),
        in_directory(a_probe_that_dies_is_noticed_at_once),
        in_directory(garbage_is_no_answer),
        in_directory(an_answer_to_another_request_is_not_taken),
        in_directory(answers_can_be_waited_for_by_the_caller),
        in_directory(a_program_that_is_not_there),
        in_directory(a_program_may_be_named_from_here),
        in_directory(a_copy_of_the_pipe_does_not_keep_it),
        in_directory(the_deadline_is_that_of_the_environment),
    };

    return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
