/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/offspring.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/child_setup.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum { NEVER_SEEN = 127 }; /* the exit code of a child that did not become the program */

/* Waits for the file, but not for ever. */
static void await_file(const char *path)
{
    enum { TRIES = 500 };
    const struct timespec moment = {.tv_nsec = 2 * 1000 * 1000};

    for (int i = 0; i < TRIES && access(path, F_OK) < 0; i++)
        nanosleep(&moment, NULL);
}

/* Becomes whom it is to be run as. That it dies with us has to be said afterwards. */
static int exec_command(const struct offspring_order *order, pid_t parent)
{
    const char *home;
    int number = order->persona == NULL ? 0 : persona_become(order->persona, &home);

    if (!order->outlives) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        /* Had it died before that, nobody would tell us. */
        if (getppid() != parent)
            _exit(NEVER_SEEN);
    }
    errno = number;
    return number == 0 ? 0 : -1;
}

/* The child's part; `input` -1: nothing. */
static _Noreturn void be_child(const struct offspring_order *order, pid_t parent, int input,
                               int output, int report)
{
    int number;

    setsid();
    umask(S_IRWXG | S_IRWXO);
    if (chdir("/") == 0 && child_setup_descriptors(input, output, &report) == 0) {
        child_setup_reset_signals();
        if (exec_command(order, parent) == 0) {
            if (order->awaited != NULL)
                await_file(order->awaited);
            execve(order->words[0], order->words, order->environment);
        }
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
static int make_child(struct offspring *made, const struct offspring_order *order, int input,
                      int output, int report)
{
    pid_t parent = getpid();
    int number;

    made->pid = fork();
    if (made->pid == 0)
        be_child(order, parent, input, output, report);
    if (made->pid < 0)
        return errno;
    made->process = (int)syscall(SYS_pidfd_open, made->pid, 0);
    if (made->process >= 0)
        return 0;
    number = errno;
    kill_and_reap(made);
    return number;
}

/* What the program reads, as the end of a pipe; -1: nothing. Returns 0 or an errno. */
static int open_input(const char *text, int *ret_input)
{
    int ends[2];
    bool is_whole;

    *ret_input = -1;
    if (text == NULL)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    /* An empty pipe takes a page at once. */
    is_whole = write(ends[1], text, strlen(text)) == (ssize_t)strlen(text);
    close(ends[1]);
    if (!is_whole) {
        close(ends[0]);
        return EIO;
    }
    *ret_input = ends[0];
    return 0;
}

/* Makes the child with both pipes there. */
static int start_with(struct offspring *offspring, const struct offspring_order *order, int input,
                      const int output[2], const int report[2])
{
    struct offspring made = {0};
    int number = make_child(&made, order, input, output[1], report[1]);

    if (number != 0)
        return number;
    close(output[1]);
    close(report[1]);
    made.output = output[0];
    made.report = report[0];
    *offspring = made;
    return 0;
}

int offspring_start(struct offspring *offspring, const struct offspring_order *order)
{
    int output[2];
    int report[2];
    int input;
    int number = open_pipe(output);

    if (number != 0)
        return number;
    number = open_pipe(report);
    if (number != 0) {
        close_pipe(output);
        return number;
    }
    number = open_input(order->input, &input);
    if (number == 0)
        number = start_with(offspring, order,
                            order->connection == NULL ? input : *order->connection, output, report);
    if (input >= 0)
        close(input);
    if (number != 0) {
        close_pipe(output);
        close_pipe(report);
    }
    return number;
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
