/* SPDX-License-Identifier: Apache-2.0
 *
 * A child process that waits until a signal ends it.
 */
#ifndef TESTS_WAITING_CHILD_H
#define TESTS_WAITING_CHILD_H

#include "support/unit.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts a child. It also ends with the test. */
static inline pid_t waiting_child_start(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

/* Kills the child, if it still runs, and waits for it. */
static inline void waiting_child_end(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Waits for a child that a signal must end, or has ended, and returns the signal. The test fails
 * after 10 s. */
static inline int waiting_child_await(pid_t child)
{
    struct pollfd process = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
    int status;

    assert_true(process.fd >= 0);
    if (poll(&process, 1, 10000) != 1) {
        waiting_child_end(child);
        fail_msg("the child still runs");
    }
    close(process.fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    return WTERMSIG(status);
}

/* Stops the child, so that a signal that it gets stays pending. */
static inline void waiting_child_stop(pid_t child)
{
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
}

/* Returns whether a signal is pending for a stopped child. */
static inline bool waiting_child_has_signal(pid_t child, int number)
{
    char path[64];
    char line[256];
    unsigned long long pending = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)child);
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "ShdPnd:", 7) == 0)
            pending = strtoull(line + 7, NULL, 16);
    }
    fclose(file);
    return (pending & (1ULL << (number - 1))) != 0;
}

#endif
