/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands for the tests of the supervisor: the test program itself, started again as
 * `/proc/self/exe PART`. A child prints to descriptor CHILD_OUTPUT_FD, one line for each event.
 */
#ifndef TESTS_CHILD_PROCESS_H
#define TESTS_CHILD_PROCESS_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"

enum { CHILD_OUTPUT_FD = 9, CHILD_SIGNALS_MAX = 64, CHILD_TERMINATED = 40 };

static inline void child_print(const char *word, long number)
{
    char line[64];
    int length = snprintf(line, sizeof(line), "%s %ld\n", word, number);

    if (write(CHILD_OUTPUT_FD, line, (size_t)length) != length)
        _exit(99);
}

/* Prints each signal that it gets, and ends at SIGTERM. */
static inline _Noreturn void child_print_signals(void)
{
    static const int heard[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT};
    sigset_t signals;

    sigemptyset(&signals);
    for (size_t i = 0; i < COUNT(heard); i++)
        sigaddset(&signals, heard[i]);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    child_print("hears", getpid());
    for (;;) {
        int signal = sigwaitinfo(&signals, NULL);

        if (signal > 0)
            child_print("signal", signal);
        if (signal == SIGTERM)
            _exit(CHILD_TERMINATED);
    }
}

static inline _Noreturn void child_wait(bool stubborn)
{
    if (stubborn)
        signal(SIGTERM, SIG_IGN);
    child_print("waits", getpid());
    for (;;)
        pause();
}

/* Ends, but leaves a process in a session of its own, and a child of this process. */
static inline _Noreturn void child_leave_behind(bool stubborn)
{
    int said[2];
    char byte;

    if (pipe(said) < 0)
        _exit(99);
    if (fork() == 0) {
        setsid();
        fork();
        if (stubborn)
            signal(SIGTERM, SIG_IGN);
        child_print("left", getpid());
        if (write(said[1], "", 1) != 1)
            _exit(99);
        for (;;)
            pause();
    }
    if (read(said[0], &byte, 1) != 1 || read(said[0], &byte, 1) != 1)
        _exit(99);
    _exit(0);
}

/* Prints which signals are blocked and ignored. */
static inline _Noreturn void child_print_signal_state(void)
{
    sigset_t blocked;

    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number <= CHILD_SIGNALS_MAX; number++) {
        struct sigaction action = {0};

        if (sigismember(&blocked, number) == 1)
            child_print("blocked", number);
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            child_print("ignored", number);
    }
    _exit(0);
}

/* Call this first in main. It does not return in a child. */
static inline void child_main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";

    if (strcmp(part, "hear") == 0)
        child_print_signals();
    if (strcmp(part, "wait") == 0 || strcmp(part, "wait-stubbornly") == 0)
        child_wait(part[4] != '\0');
    if (strcmp(part, "leave") == 0 || strcmp(part, "leave-stubborn") == 0)
        child_leave_behind(part[5] != '\0');
    if (strcmp(part, "tell-signals") == 0)
        child_print_signal_state();
    if (strcmp(part, "exit") == 0)
        _exit(atoi(argv[2]));
    if (strcmp(part, "die") == 0) {
        raise(atoi(argv[2]));
        _exit(98);
    }
}

#endif
