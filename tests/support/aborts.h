/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that an assertion catches a bug of the caller.
 */
#ifndef TESTS_ABORTS_H
#define TESTS_ABORTS_H

#include "support/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs `misuse` in a child process and fails the test unless abort ends it. Skips the test when
 * assertions are compiled out. */
static inline void assert_aborts(void (*misuse)(void))
{
    int status;
    pid_t child;

#ifdef NDEBUG
    skip();
#endif
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);

        /* cmocka would catch the signal. Its message and a core file are not wanted. */
        signal(SIGABRT, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(nowhere, STDERR_FILENO);
        misuse();
        _exit(EXIT_SUCCESS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

#endif
