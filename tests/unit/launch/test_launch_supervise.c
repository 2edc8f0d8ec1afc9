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
#include "support/stage.h"
#include "support/temporary_directory.h"

static void check_code(const char *part, const char *argument, int code)
{
    struct stage stage = stage_open();

    stage_supervise(&stage);
    assert_true(launch_supervisor_is_done(stage.supervisor));
    assert_true(launch_supervisor_next_time(stage.supervisor) == INT64_MAX);
    start(stage.supervisor, part, argument);
    assert_false(launch_supervisor_is_done(stage.supervisor));
    until_done(&stage);
    assert_int_equal(launch_supervisor_exit_code(stage.supervisor), code);
    assert_true(launch_supervisor_next_time(stage.supervisor) == INT64_MAX);
    stage_close(&stage);
}

static void codes_are_the_commands(void **state)
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
    struct stage stage = stage_open();

    stage_supervise(&stage);
    assert_fails(start_words(stage.supervisor, words, environment, &error), code, &error, message);
    assert_int_equal(start_words(stage.supervisor, words, environment, NULL), code);
    assert_true(launch_supervisor_is_done(stage.supervisor));
    launch_supervisor_dispatch(stage.supervisor);
    assert_true(launch_supervisor_is_done(stage.supervisor));
    check_silent(&stage);
    stage_close(&stage);
}

static void what_cannot_be_executed(void **state)
{
    int file = open("plain", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    (void)state;
    assert_true(file >= 0);
    close(file);
    check_not_started("true", BERTH_ERROR_NOT_FOUND, "expected to run 'true', got no such command");
    check_not_started("", BERTH_ERROR_NOT_FOUND, "expected to run '', got no such command");
    check_not_started("./nothing", BERTH_ERROR_NOT_FOUND,
                      "expected to run './nothing', got no such command");
    check_not_started("/", BERTH_ERROR_PERMISSION, "expected to run '/': Permission denied");
    check_not_started("plain", BERTH_ERROR_PERMISSION,
                      "expected to run 'plain': Permission denied");
    check_not_started("./plain/x", BERTH_ERROR_IO, "expected to run './plain/x': Not a directory");
}

static void the_commands_own_path_counts(void **state)
{
    static const char *const words[] = {"berth-test-command", NULL};
    const char *const environment[] = {"PATH=/nowhere:.", "CODE=23", NULL};
    struct stage stage = stage_open();
    int file = open("berth-test-command", O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    static const char script[] = "#!/bin/sh\nexit $CODE\n";

    (void)state;
    assert_int_equal(write(file, script, strlen(script)), strlen(script));
    close(file);
    stage_supervise(&stage);
    assert_int_equal(start_words(stage.supervisor, words, environment, NULL), 0);
    until_done(&stage);
    assert_int_equal(launch_supervisor_exit_code(stage.supervisor), 23);
    stage_close(&stage);
}

static void no_process_to_be_had(void **state)
{
    struct stage stage = stage_open();
    const char *const words[] = {"/proc/self/exe", "exit", "0", NULL};
    struct berth_error error = BERTH_ERROR_INIT;
    struct rlimit before, none;

    (void)state;
    stage_supervise(&stage);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(start_words(stage.supervisor, words, words, &error), BERTH_ERROR_LIMIT);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_string_equal(error.message, "expected a pipe to run a command: Too many open files");
    assert_true(launch_supervisor_is_done(stage.supervisor));
    stage_close(&stage);
}

static void signals_are_passed_on(void **state)
{
    static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};
    struct stage stage = stage_open();
    char words[32];

    (void)state;
    stage_supervise(&stage);
    start(stage.supervisor, "hear", NULL);
    start(stage.supervisor, "hear", NULL);
    until_said(&stage, "hears", 2);
    for (size_t i = 0; i < COUNT(passed); i++) {
        kill(getpid(), passed[i]);
        snprintf(words, sizeof(words), "signal %d\n", passed[i]);
        until_said(&stage, words, 2);
        assert_int_equal(times_said(&stage, "signal"), 2 * (i + 1));
    }
    kill(getpid(), SIGTERM);
    until_done(&stage);
    assert_int_equal(launch_supervisor_exit_code(stage.supervisor), PUPPET_TERMINATED);
    check_silent(&stage);
    stage_close(&stage);
}

/* The signals of this process are as they were before. */
static void check_told_signals(void)
{
    struct stage stage = stage_open();

    stage_supervise(&stage);
    start(stage.supervisor, "tell-signals", NULL);
    until_done(&stage);
    until_silent(&stage);
    assert_string_equal(text_string(&stage.said),
                        "ignored 1\nblocked 12\nignored 17\nblocked 40\n");
    assert_int_equal(launch_supervisor_exit_code(stage.supervisor), 0);
    stage_close(&stage);
}

static void signals_are_to_the_command_what_they_were(void **state)
{
    sigset_t wanted, before, found;

    (void)state;
    /* Whoever runs the tests may ignore some. */
    for (int number = 1; number <= PUPPET_SIGNALS; number++) {
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
    for (int number = 1; number <= PUPPET_SIGNALS; number++)
        assert_int_equal(sigismember(&found, number), sigismember(&wanted, number));
    assert_ptr_equal(signal(SIGHUP, SIG_DFL), SIG_IGN);
    assert_ptr_equal(signal(SIGCHLD, SIG_DFL), SIG_IGN);
}

static void the_first_failure_ends_the_rest(void **state)
{
    struct stage stage = stage_open();

    (void)state;
    stage_supervise(&stage);
    start(stage.supervisor, "hear", NULL);
    start(stage.supervisor, "wait", NULL);
    until_said(&stage, "hears", 1);
    until_said(&stage, "waits", 1);
    start(stage.supervisor, "exit", "0");
    start(stage.supervisor, "exit", "5");
    until_done(&stage);
    assert_int_equal(launch_supervisor_exit_code(stage.supervisor), 5);
    assert_int_equal(start_words(stage.supervisor, NULL, NULL, NULL), BERTH_ERROR_CANCELLED);
    check_silent(&stage);
    stage_close(&stage);
}

static void force_comes_after_the_grace(void **state)
{
    struct stage stage = stage_open();
    int64_t started;

    (void)state;
    stage_supervise(&stage);
    launch_supervisor_set_grace(stage.supervisor, DURATION_SECOND / 20);
    start(stage.supervisor, "wait-stubbornly", NULL);
    until_said(&stage, "waits", 1);
    started = now();
    start(stage.supervisor, "exit", "6");
    until_done(&stage);
    assert_true(now() - started >= DURATION_SECOND / 20);
    assert_int_equal(launch_supervisor_exit_code(stage.supervisor), 6);
    check_silent(&stage);
    stage_close(&stage);
}

static void stopping_for_good(void **state)
{
    struct stage stage = stage_open();
    int64_t far = now() + 1000 * DURATION_SECOND;

    (void)state;
    stage_supervise(&stage);
    start(stage.supervisor, "wait-stubbornly", NULL);
    start(stage.supervisor, "wait", NULL);
    start(stage.supervisor, "leave", NULL);
    until_said(&stage, "waits", 2);
    until_said(&stage, "left", 2);
    launch_supervisor_stop(stage.supervisor, far);
    assert_true(launch_supervisor_next_time(stage.supervisor) == far);
    launch_supervisor_stop(stage.supervisor, far + 1);
    assert_true(launch_supervisor_next_time(stage.supervisor) == far);
    launch_supervisor_stop(stage.supervisor, now());
    until_done(&stage);
    assert_int_not_equal(launch_supervisor_exit_code(stage.supervisor), 0);
    check_silent(&stage);
    stage_close(&stage);
}

static void a_stopped_command_is_ended_too(void **state)
{
    struct stage stage = stage_open();

    (void)state;
    stage_supervise(&stage);
    start(stage.supervisor, "wait", NULL);
    start(stage.supervisor, "hear", NULL);
    until_said(&stage, "waits", 1);
    until_said(&stage, "hears", 1);
    /* One goes on, so do we: had we stopped, this test would end here. */
    kill((pid_t)number_said(&stage, "waits "), SIGSTOP);
    kill(getpid(), SIGUSR1);
    until_said(&stage, "signal 10\n", 1);
    launch_supervisor_stop(stage.supervisor, now() + 1000 * DURATION_SECOND);
    until_done(&stage);
    check_silent(&stage);
    stage_close(&stage);
}

static void check_left_behind(const char *part, int64_t grace)
{
    struct stage stage = stage_open();

    stage_supervise(&stage);
    launch_supervisor_set_grace(stage.supervisor, grace);
    start(stage.supervisor, part, NULL);
    until_done(&stage);
    assert_int_equal(launch_supervisor_exit_code(stage.supervisor), 0);
    check_silent(&stage);
    stage_close(&stage);
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
    struct stage stage = stage_open();
    int64_t deadline = now() + STAGE_MAX;

    (void)state;
    stage_supervise(&stage);
    launch_supervisor_set_grace(stage.supervisor, 1000 * DURATION_SECOND);
    start(stage.supervisor, "leave-stubborn", NULL);
    while (launch_supervisor_next_time(stage.supervisor) == INT64_MAX)
        stage_turn(&stage, deadline);
    start(stage.supervisor, "hear", NULL);
    assert_true(launch_supervisor_next_time(stage.supervisor) == INT64_MAX);
    launch_supervisor_set_grace(stage.supervisor, 0);
    until_said(&stage, "hears", 1);
    assert_false(launch_supervisor_is_done(stage.supervisor));
    kill(getpid(), SIGTERM);
    until_done(&stage);
    assert_int_equal(launch_supervisor_exit_code(stage.supervisor), PUPPET_TERMINATED);
    check_silent(&stage);
    stage_close(&stage);
}

static void children_from_before_are_left_alone(void **state)
{
    pid_t stranger = fork(); /* before there is a voice that it could have */
    struct stage stage;
    int status;

    (void)state;
    if (stranger == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    stage = stage_open();
    stage_supervise(&stage);
    launch_supervisor_set_grace(stage.supervisor, 0);
    start(stage.supervisor, "leave-stubborn", NULL);
    until_done(&stage);
    check_silent(&stage);
    assert_int_equal(waitpid(stranger, &status, WNOHANG), 0);
    kill(stranger, SIGKILL);
    assert_int_equal(waitpid(stranger, &status, 0), stranger);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    stage_close(&stage);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_the_commands),
        cmocka_unit_test_setup_teardown(what_cannot_be_executed, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(the_commands_own_path_counts, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test(no_process_to_be_had),
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

    puppet_play(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
