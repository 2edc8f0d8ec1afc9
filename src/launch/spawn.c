/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/supervise_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "launch/exec_command.h"
#include "launch/pin.h"

enum { NEVER_SEEN = 127 }; /* exit code of a child that fails before its exec; ignored */

void spawn_restore_signals(const struct signals_before *before)
{
    sigaction(SIGCHLD, &before->child_action, NULL);
    sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

/* Prepares the child: signals, death signal, streams and CPUs. */
static void prepare_child(const struct launch_copy *copy, const struct signals_before *before,
                          pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    /* The parent may have died before the death signal was set. */
    if (getppid() != parent)
        _exit(NEVER_SEEN);
    spawn_restore_signals(before);
    if (copy->output > 0)
        dup2(copy->output, STDOUT_FILENO);
    if (copy->error > 0)
        dup2(copy->error, STDERR_FILENO);
    if (copy->cpus != NULL)
        pin_apply(copy->cpus);
}

/* Runs in the child: becomes the command, or writes the errno to the pipe. */
static _Noreturn void run_child(const struct launch_copy *copy, const struct signals_before *before,
                                pid_t parent, int report)
{
    int number;

    prepare_child(copy, before, parent);
    number = exec_command(copy->arguments, copy->environment);
    while (write(report, &number, sizeof(number)) < 0 && errno == EINTR)
        ;
    _exit(NEVER_SEEN);
}

/* Reads the errno of a child that cannot become the command. Returns 0 after its exec. */
static int read_report(int report)
{
    int number = 0;
    ssize_t length;

    do
        length = read(report, &number, sizeof(number));
    while (length < 0 && errno == EINTR);
    return length == sizeof(number) ? number : 0;
}

/* Sets an error of berth itself. The codes of exec_command_error would blame the command. */
static int set_limit_error(struct berth_error *error, const char *wanted, int number)
{
    if (number == ENOMEM)
        return error_set_memory(error);
    return error_set(error, BERTH_ERROR_LIMIT, "cannot create %s for the command: %s", wanted,
                     strerror(number));
}

/* Starts a copy that calls its `run` function. Does not wait for an exec. */
static int spawn_run(const struct launch_copy *copy, const struct signals_before *before,
                     pid_t *ret_pid, struct berth_error *error)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        prepare_child(copy, before, parent);
        _exit(copy->run(copy->context));
    }
    if (pid < 0)
        return set_limit_error(error, "a process", errno);
    *ret_pid = pid;
    return 0;
}

int spawn(const struct launch_copy *copy, const struct signals_before *before, pid_t *ret_pid,
          struct berth_error *error)
{
    pid_t parent = getpid();
    int report[2];
    int number;
    pid_t pid;

    if (copy->run != NULL)
        return spawn_run(copy, before, ret_pid, error);
    if (pipe2(report, O_CLOEXEC) < 0)
        return set_limit_error(error, "a pipe", errno);
    pid = fork();
    if (pid == 0)
        run_child(copy, before, parent, report[1]);
    number = errno;
    close(report[1]);
    if (pid > 0)
        number = read_report(report[0]);
    close(report[0]);
    if (pid < 0)
        return set_limit_error(error, "a process", number);
    if (number != 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return exec_command_error(copy->arguments[0], number, error);
    }
    *ret_pid = pid;
    return 0;
}
