/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that carry the mark of a lease, and other processes, for a test to find. They end with
 * the test.
 */
#ifndef TESTS_MARKED_PROCESS_H
#define TESTS_MARKED_PROCESS_H

#include "support/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct marked_process {
    unsigned long lease; /* 0: without a mark */
    const char *socket;
    const char *script; /* of a shell, whose processes must end with it; NULL: it waits to be
                         * killed */
    uid_t uid;          /* for tests of root's; 0: the test's own */
};

static inline void marked_process_exec(const struct marked_process *process)
{
    char lease[64];
    char socket[256];
    char *environment[] = {lease, socket, (char *)"BERTH_DEVICES=nvidia0,nvidia1",
                           (char *)"PATH=/usr/bin:/bin", NULL};
    int nothing;
    char *without[] = {(char *)"PATH=/usr/bin:/bin", NULL};

    snprintf(lease, sizeof(lease), "BERTH_LEASE=%lu", process->lease);
    snprintf(socket, sizeof(socket), "BERTH_SOCKET=%s",
             process->socket == NULL ? "" : process->socket);
    if (process->uid != 0 && (setgid(process->uid) < 0 || setuid(process->uid) < 0))
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* A process that is left must not keep the test's output open. */
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDERR_FILENO) < 0 ||
        (process->script == NULL && dup2(nothing, STDOUT_FILENO) < 0))
        _exit(1);
    execle("/bin/sh", "sh", "-c", process->script == NULL ? "exec sleep 60" : process->script, NULL,
           process->lease == 0 ? without : environment);
    _exit(127);
}

/* Starts the process. It writes a line to its standard output when it has started its own
 * processes, if it has a script: this waits for the line. Otherwise it waits for the exec. */
static inline pid_t marked_process_start(const struct marked_process *process)
{
    int ends[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        if (process->script != NULL && dup2(ends[1], STDOUT_FILENO) < 0)
            _exit(1);
        marked_process_exec(process);
    }
    assert_true(pid > 0);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), process->script == NULL ? 0 : 1);
    close(ends[0]);
    return pid;
}

static inline void marked_process_end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#endif
