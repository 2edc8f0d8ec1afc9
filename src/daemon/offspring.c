/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/offspring.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/newborn.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum { NEVER_SEEN = 127 }; /* the exit code of a child that did not become the program */

/* The child's part. */
static _Noreturn void be_child(char *const *words, char *const *environment, pid_t parent,
                               int output, int report)
{
    enum { KEPT = 3 };
    int nothing;
    int number;

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    /* Had it died before that, nobody would tell us. */
    if (getppid() != parent)
        _exit(NEVER_SEEN);
    setsid();
    umask(S_IRWXG | S_IRWXO);
    /* Ours may be among 0 to 3 themselves when we were started without some of these. */
    output = fcntl(output, F_DUPFD_CLOEXEC, KEPT + 1);
    report = fcntl(report, F_DUPFD_CLOEXEC, KEPT + 1);
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (chdir("/") == 0 && output >= 0 && report >= 0 && nothing >= 0 &&
        (nothing == STDIN_FILENO ? fcntl(nothing, F_SETFD, 0) : dup2(nothing, STDIN_FILENO)) >= 0 &&
        dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0 &&
        dup3(report, KEPT, O_CLOEXEC) >= 0) {
        report = KEPT;
        newborn_close_from(KEPT + 1);
        newborn_reset_signals();
        execve(words[0], words, environment);
    }
    number = errno;
    while (write(report, &number, sizeof(number)) < 0 && errno == EINTR)
        ;
    _exit(NEVER_SEEN);
}

static int open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return 0;
}

static void close_pipe(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

void offspring_kill(const struct offspring *offspring)
{
    kill(-offspring->pid, SIGKILL);
    /* It may not have made a group of its own yet. */
    kill(offspring->pid, SIGKILL);
}

/* It has only just begun, so it is gone at once. */
static void kill_and_reap(const struct offspring *offspring)
{
    offspring_kill(offspring);
    while (waitpid(offspring->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void offspring_undo(struct offspring *offspring)
{
    kill_and_reap(offspring);
    close(offspring->process);
    close(offspring->output);
    close(offspring->report);
    *offspring = (struct offspring){0};
}

/* Makes the child; fork and not vfork, which would wait for the disk that the program is on.
 * Returns 0 or an errno. */
static int make_child(struct offspring *made, char *const *words, char *const *environment,
                      int output, int report)
{
    pid_t parent = getpid();
    int number;

    made->pid = fork();
    if (made->pid == 0)
        be_child(words, environment, parent, output, report);
    if (made->pid < 0)
        return errno;
    made->process = (int)syscall(SYS_pidfd_open, made->pid, 0);
    if (made->process >= 0)
        return 0;
    number = errno;
    kill_and_reap(made);
    return number;
}

int offspring_start(struct offspring *offspring, char *const *words, char *const *environment)
{
    struct offspring made = {0};
    int output[2];
    int report[2];
    int number = open_pipe(output);

    if (number != 0)
        return number;
    number = open_pipe(report);
    if (number != 0) {
        close_pipe(output);
        return number;
    }
    number = make_child(&made, words, environment, output[1], report[1]);
    if (number != 0) {
        close_pipe(output);
        close_pipe(report);
        return number;
    }
    close(output[1]);
    close(report[1]);
    made.output = output[0];
    made.report = report[0];
    *offspring = made;
    return 0;
}

bool offspring_reap(const struct offspring *offspring, struct offspring_end *ret_end)
{
    siginfo_t info = {0};
    int failure;

    if (waitid((idtype_t)P_PIDFD, (id_t)offspring->process, &info, WEXITED | WNOHANG) < 0 ||
        info.si_pid == 0)
        return false;
    *ret_end = (struct offspring_end){
        .is_killed = info.si_code != CLD_EXITED,
        .number = info.si_status,
    };
    if (read(offspring->report, &failure, sizeof(failure)) == sizeof(failure))
        ret_end->failure = failure;
    return true;
}
