/* SPDX-License-Identifier: Apache-2.0
 *
 * Supervisors in their own processes: as jobs of a shell, on a terminal, and killed.
 */
#include "support/unit.h"

#include "launch/supervise.h"

#include <poll.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "support/programs/child_output.h"

/* Runs a supervisor in its own process: runs copies of a part until all have ended, prints "turn"
 * after each dispatch, and exits with their code. */
static _Noreturn void supervise_alone(const char *part, int copies)
{
    struct launch_supervisor *supervisor;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (launch_supervisor_create(&supervisor, NULL) < 0)
        _exit(97);
    for (int i = 0; i < copies; i++) {
        const char *const words[] = {"/proc/self/exe", part, NULL};

        if (start_words(supervisor, words, (const char *const *)environ, NULL) < 0)
            _exit(96);
    }
    while (!launch_supervisor_is_done(supervisor)) {
        struct pollfd polled = {.fd = launch_supervisor_descriptor(supervisor), .events = POLLIN};

        poll(&polled, 1, -1);
        launch_supervisor_dispatch(supervisor);
        child_print("turn", 0);
    }
    _exit(launch_supervisor_exit_code(supervisor));
}

static void check_ends_with(pid_t pid, int code)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

static void the_commands_die_with_the_supervisor(void **state)
{
    struct child_output output = child_output_open();
    pid_t alone = fork();
    int status;

    (void)state;
    if (alone == 0)
        supervise_alone("wait-stubbornly", 3);
    until_printed(&output, "waits", 3);
    kill(alone, SIGKILL);
    until_closed(&output);
    assert_int_equal(waitpid(alone, &status, 0), alone);
    child_output_close(&output);
}

static void it_stops_when_the_commands_do(void **state)
{
    struct child_output output = child_output_open();
    pid_t alone = fork();
    int status;

    (void)state;
    if (alone == 0) {
        /* As a job of a shell: the kernel does not stop an orphaned process group. */
        setpgid(0, 0);
        supervise_alone("hear", 2);
    }
    until_printed(&output, "hears", 2);
    /* The signal is forwarded and stops the commands. */
    kill(alone, SIGTSTP);
    assert_int_equal(waitpid(alone, &status, WUNTRACED), alone);
    assert_true(WIFSTOPPED(status));
    kill(alone, SIGCONT);
    until_printed(&output, "signal 18\n", 2);
    kill(alone, SIGTERM);
    until_printed(&output, "signal 15\n", 2);
    check_ends_with(alone, CHILD_TERMINATED);
    until_closed(&output);
    child_output_close(&output);
}

static void outside_a_job_it_does_not_stop(void **state)
{
    struct child_output output = child_output_open();
    pid_t alone = fork();
    size_t turns;

    (void)state;
    if (alone == 0) {
        setsid();
        supervise_alone("hear", 1);
    }
    until_printed(&output, "hears", 1);
    turns = times_printed(&output, "turn");
    kill((pid_t)number_printed(&output, "hears "), SIGSTOP);
    until_printed(&output, "turn", turns + 1);
    kill((pid_t)number_printed(&output, "hears "), SIGCONT);
    kill(alone, SIGTERM);
    check_ends_with(alone, CHILD_TERMINATED);
    child_output_close(&output);
}

/* Acts as a shell with one job on its terminal. SIGUSR1 continues a stopped job. */
static _Noreturn void be_shell(void)
{
    pid_t job;
    int status;
    sigset_t go_on;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&go_on);
    sigaddset(&go_on, SIGUSR1);
    sigprocmask(SIG_BLOCK, &go_on, NULL);
    job = fork();
    if (job == 0) {
        sigprocmask(SIG_UNBLOCK, &go_on, NULL);
        setpgid(0, 0);
        signal(SIGTTOU, SIG_IGN);
        tcsetpgrp(0, getpid());
        signal(SIGTTOU, SIG_DFL);
        supervise_alone("hear", 2);
    }
    while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
        child_print("stopped", job);
        sigwaitinfo(&go_on, NULL);
        kill(-job, SIGCONT);
    }
    _exit(WEXITSTATUS(status));
}

static void the_terminals_signals_come_once(void **state)
{
    struct child_output output = child_output_open();
    int terminal;
    pid_t shell = forkpty(&terminal, NULL, NULL, NULL);

    (void)state;
    assert_true(shell >= 0);
    if (shell == 0)
        be_shell();
    until_printed(&output, "hears", 2);
    assert_int_equal(write(terminal, "\003", 1), 1);
    until_printed(&output, "signal 2\n", 2);
    assert_int_equal(write(terminal, "\032", 1), 1);
    until_printed(&output, "stopped", 1);
    kill(shell, SIGUSR1);
    until_printed(&output, "signal 18\n", 2);
    assert_int_equal(write(terminal, "\034", 1), 1);
    until_printed(&output, "signal 3\n", 2);
    kill((pid_t)number_printed(&output, "stopped "), SIGTERM);
    check_ends_with(shell, CHILD_TERMINATED);
    until_closed(&output);
    assert_int_equal(times_printed(&output, "signal 2\n"), 2);
    assert_int_equal(times_printed(&output, "signal 3\n"), 2);
    assert_int_equal(times_printed(&output, "signal 15\n"), 2);
    close(terminal);
    child_output_close(&output);
}

static void a_leaders_hangup_is_passed_on(void **state)
{
    struct child_output output = child_output_open();
    int terminal;
    pid_t leader = forkpty(&terminal, NULL, NULL, NULL);

    (void)state;
    assert_true(leader >= 0);
    if (leader == 0)
        supervise_alone("hear", 1);
    until_printed(&output, "hears", 1);
    close(terminal);
    until_printed(&output, "signal 1\n", 1);
    kill(leader, SIGTERM);
    check_ends_with(leader, CHILD_TERMINATED);
    child_output_close(&output);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_commands_die_with_the_supervisor),
        cmocka_unit_test(it_stops_when_the_commands_do),
        cmocka_unit_test(outside_a_job_it_does_not_stop),
        cmocka_unit_test(the_terminals_signals_come_once),
        cmocka_unit_test(a_leaders_hangup_is_passed_on),
    };

    child_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
