/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "launch/supervise.h"

#include <berth/error.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/text/quantity.h"
#include "support/assert_error.h"
#include "support/programs/child_output.h"
#include "support/temporary_directory.h"

static void check_code(const char *part, const char *argument, int code)
{
    struct child_output output = child_output_open();

    child_output_supervise(&output);
    assert_true(launch_supervisor_is_done(output.supervisor));
    assert_true(launch_supervisor_next_time(output.supervisor) == INT64_MAX);
    start(output.supervisor, part, argument);
    assert_false(launch_supervisor_is_done(output.supervisor));
    until_done(&output);
    assert_int_equal(launch_supervisor_exit_code(output.supervisor), code);
    assert_true(launch_supervisor_next_time(output.supervisor) == INT64_MAX);
    child_output_close(&output);
}

static void exit_codes_are_passed_on(void **state)
{
    (void)state;
    check_code("exit", "0", 0);
    check_code("exit", "1", 1);
    check_code("exit", "255", 255);
    check_code("die", "15", 143);
    check_code("die", "9", 137);
}

static void check_not_started(const char *command, int code, const char *message)
{
    const char *const words[] = {command, NULL};
    const char *const environment[] = {"PATH=/nowhere:/etc/passwd:.", NULL};
    struct berth_error error = BERTH_ERROR_INIT;
    struct child_output output = child_output_open();

    child_output_supervise(&output);
    assert_fails(start_words(output.supervisor, words, environment, &error), code, &error, message);
    assert_int_equal(start_words(output.supervisor, words, environment, NULL), code);
    assert_true(launch_supervisor_is_done(output.supervisor));
    launch_supervisor_dispatch(output.supervisor);
    assert_true(launch_supervisor_is_done(output.supervisor));
    check_closed(&output);
    child_output_close(&output);
}

static void what_cannot_be_executed(void **state)
{
    int file = open("plain", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    (void)state;
    assert_true(file >= 0);
    close(file);
    check_not_started("true", BERTH_ERROR_NOT_FOUND, "cannot run 'true': no such command");
    check_not_started("", BERTH_ERROR_NOT_FOUND, "cannot run '': no such command");
    check_not_started("./nothing", BERTH_ERROR_NOT_FOUND,
                      "cannot run './nothing': no such command");
    check_not_started("/", BERTH_ERROR_PERMISSION, "cannot run '/': Permission denied");
    check_not_started("plain", BERTH_ERROR_PERMISSION, "cannot run 'plain': Permission denied");
    check_not_started("./plain/x", BERTH_ERROR_IO, "cannot run './plain/x': Not a directory");
}

static void the_commands_own_path_counts(void **state)
{
    static const char *const words[] = {"berth-test-command", NULL};
    const char *const environment[] = {"PATH=/nowhere:.", "CODE=23", NULL};
    struct child_output output = child_output_open();
    int file = open("berth-test-command", O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    static const char script[] = "#!/bin/sh\nexit $CODE\n";

    (void)state;
    assert_int_equal(write(file, script, strlen(script)), strlen(script));
    close(file);
    child_output_supervise(&output);
    assert_int_equal(start_words(output.supervisor, words, environment, NULL), 0);
    until_done(&output);
    assert_int_equal(launch_supervisor_exit_code(output.supervisor), 23);
    child_output_close(&output);
}

static void no_process_can_be_started(void **state)
{
    struct child_output output = child_output_open();
    const char *const words[] = {"/proc/self/exe", "exit", "0", NULL};
    struct berth_error error = BERTH_ERROR_INIT;
    struct rlimit before, none;

    (void)state;
    child_output_supervise(&output);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(start_words(output.supervisor, words, words, &error), BERTH_ERROR_LIMIT);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_string_equal(error.message, "cannot create a pipe for the command: Too many open files");
    assert_true(launch_supervisor_is_done(output.supervisor));
    child_output_close(&output);
}

static void signals_are_passed_on(void **state)
{
    static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};
    struct child_output output = child_output_open();
    char words[32];

    (void)state;
    child_output_supervise(&output);
    start(output.supervisor, "hear", NULL);
    start(output.supervisor, "hear", NULL);
    until_printed(&output, "hears", 2);
    for (size_t i = 0; i < COUNT(passed); i++) {
        kill(getpid(), passed[i]);
        snprintf(words, sizeof(words), "signal %d\n", passed[i]);
        until_printed(&output, words, 2);
        assert_int_equal(times_printed(&output, "signal"), 2 * (i + 1));
    }
    kill(getpid(), SIGTERM);
    until_done(&output);
    assert_int_equal(launch_supervisor_exit_code(output.supervisor), CHILD_TERMINATED);
    check_closed(&output);
    child_output_close(&output);
}

/* Checks that the commands get the original signal settings. */
static void check_told_signals(void)
{
    struct child_output output = child_output_open();

    child_output_supervise(&output);
    start(output.supervisor, "tell-signals", NULL);
    until_done(&output);
    until_closed(&output);
    assert_string_equal(text_string(&output.text),
                        "ignored 1\nblocked 12\nignored 17\nblocked 40\n");
    assert_int_equal(launch_supervisor_exit_code(output.supervisor), 0);
    child_output_close(&output);
}

static void signals_are_to_the_command_what_they_were(void **state)
{
    sigset_t wanted, before, found;

    (void)state;
    /* The process that runs the tests may ignore some. */
    for (int number = 1; number <= CHILD_SIGNALS_MAX; number++) {
        struct sigaction action;

        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            signal(number, SIG_DFL);
    }
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR2);
    sigaddset(&wanted, 40);
    sigprocmask(SIG_SETMASK, &wanted, &before);
    signal(SIGHUP, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    check_told_signals();
    sigprocmask(SIG_SETMASK, &before, &found);
    for (int number = 1; number <= CHILD_SIGNALS_MAX; number++)
        assert_int_equal(sigismember(&found, number), sigismember(&wanted, number));
    assert_ptr_equal(signal(SIGHUP, SIG_DFL), SIG_IGN);
    assert_ptr_equal(signal(SIGCHLD, SIG_DFL), SIG_IGN);
}

static void the_first_failure_ends_the_rest(void **state)
{
    struct child_output output = child_output_open();

    (void)state;
    child_output_supervise(&output);
    start(output.supervisor, "hear", NULL);
    start(output.supervisor, "wait", NULL);
    until_printed(&output, "hears", 1);
    until_printed(&output, "waits", 1);
    start(output.supervisor, "exit", "0");
    start(output.supervisor, "exit", "5");
    until_done(&output);
    assert_int_equal(launch_supervisor_exit_code(output.supervisor), 5);
    assert_int_equal(start_words(output.supervisor, NULL, NULL, NULL), BERTH_ERROR_CANCELLED);
    check_closed(&output);
    child_output_close(&output);
}

static void force_comes_after_the_grace(void **state)
{
    struct child_output output = child_output_open();
    int64_t started;

    (void)state;
    child_output_supervise(&output);
    launch_supervisor_set_grace(output.supervisor, DURATION_SECOND / 20);
    start(output.supervisor, "wait-stubbornly", NULL);
    until_printed(&output, "waits", 1);
    started = now();
    start(output.supervisor, "exit", "6");
    until_done(&output);
    assert_true(now() - started >= DURATION_SECOND / 20);
    assert_int_equal(launch_supervisor_exit_code(output.supervisor), 6);
    check_closed(&output);
    child_output_close(&output);
}

static void stopping_for_good(void **state)
{
    struct child_output output = child_output_open();
    int64_t far = now() + 1000 * DURATION_SECOND;

    (void)state;
    child_output_supervise(&output);
    start(output.supervisor, "wait-stubbornly", NULL);
    start(output.supervisor, "wait", NULL);
    start(output.supervisor, "leave", NULL);
    until_printed(&output, "waits", 2);
    until_printed(&output, "left", 2);
    launch_supervisor_stop(output.supervisor, far);
    assert_true(launch_supervisor_next_time(output.supervisor) == far);
    launch_supervisor_stop(output.supervisor, far + 1);
    assert_true(launch_supervisor_next_time(output.supervisor) == far);
    launch_supervisor_stop(output.supervisor, now());
    until_done(&output);
    assert_int_not_equal(launch_supervisor_exit_code(output.supervisor), 0);
    check_closed(&output);
    child_output_close(&output);
}

static void a_stopped_command_is_ended_too(void **state)
{
    struct child_output output = child_output_open();

    (void)state;
    child_output_supervise(&output);
    start(output.supervisor, "wait", NULL);
    start(output.supervisor, "hear", NULL);
    until_printed(&output, "waits", 1);
    until_printed(&output, "hears", 1);
    /* One command continues, so the supervisor does not stop; otherwise this test would hang here.
     */
    kill((pid_t)number_printed(&output, "waits "), SIGSTOP);
    kill(getpid(), SIGUSR1);
    until_printed(&output, "signal 10\n", 1);
    launch_supervisor_stop(output.supervisor, now() + 1000 * DURATION_SECOND);
    until_done(&output);
    check_closed(&output);
    child_output_close(&output);
}

static void check_left_behind(const char *part, int64_t grace)
{
    struct child_output output = child_output_open();

    child_output_supervise(&output);
    launch_supervisor_set_grace(output.supervisor, grace);
    start(output.supervisor, part, NULL);
    until_done(&output);
    assert_int_equal(launch_supervisor_exit_code(output.supervisor), 0);
    check_closed(&output);
    child_output_close(&output);
}

static void what_was_left_behind_is_ended(void **state)
{
    (void)state;
    check_left_behind("leave", 1000 * DURATION_SECOND);
    check_left_behind("leave-stubborn", DURATION_SECOND / 50);
    check_left_behind("leave-stubborn", 0);
}

static void a_later_copy_is_not_cleared_away(void **state)
{
    struct child_output output = child_output_open();
    int64_t deadline = now() + CHILD_OUTPUT_TIMEOUT;

    (void)state;
    child_output_supervise(&output);
    launch_supervisor_set_grace(output.supervisor, 1000 * DURATION_SECOND);
    start(output.supervisor, "leave-stubborn", NULL);
    while (launch_supervisor_next_time(output.supervisor) == INT64_MAX)
        child_output_wait(&output, deadline);
    start(output.supervisor, "hear", NULL);
    assert_true(launch_supervisor_next_time(output.supervisor) == INT64_MAX);
    launch_supervisor_set_grace(output.supervisor, 0);
    until_printed(&output, "hears", 1);
    assert_false(launch_supervisor_is_done(output.supervisor));
    kill(getpid(), SIGTERM);
    until_done(&output);
    assert_int_equal(launch_supervisor_exit_code(output.supervisor), CHILD_TERMINATED);
    check_closed(&output);
    child_output_close(&output);
}

static void children_from_before_are_left_alone(void **state)
{
    pid_t stranger = fork(); /* before the output's pipe exists, which it must not inherit */
    struct child_output output;
    int status;

    (void)state;
    if (stranger == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    output = child_output_open();
    child_output_supervise(&output);
    launch_supervisor_set_grace(output.supervisor, 0);
    start(output.supervisor, "leave-stubborn", NULL);
    until_done(&output);
    check_closed(&output);
    assert_int_equal(waitpid(stranger, &status, WNOHANG), 0);
    kill(stranger, SIGKILL);
    assert_int_equal(waitpid(stranger, &status, 0), stranger);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    child_output_close(&output);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_are_passed_on),
        cmocka_unit_test_setup_teardown(what_cannot_be_executed, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(the_commands_own_path_counts, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test(no_process_can_be_started),
        cmocka_unit_test(signals_are_passed_on),
        cmocka_unit_test(signals_are_to_the_command_what_they_were),
        cmocka_unit_test(the_first_failure_ends_the_rest),
        cmocka_unit_test(force_comes_after_the_grace),
        cmocka_unit_test(stopping_for_good),
        cmocka_unit_test(a_stopped_command_is_ended_too),
        cmocka_unit_test(what_was_left_behind_is_ended),
        cmocka_unit_test(a_later_copy_is_not_cleared_away),
        cmocka_unit_test(children_from_before_are_left_alone),
    };

    child_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
