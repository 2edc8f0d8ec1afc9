/* SPDX-License-Identifier: Apache-2.0
 *
 * A made-up /proc in the working directory, which must be temporary, with any number of processes.
 * Their pidfds are eventfds, which say that the process runs.
 */
#ifndef TESTS_MADE_UP_PROCESSES_H
#define TESTS_MADE_UP_PROCESSES_H

#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc_reader/proc_files.h"

/* Calls of made_up_open() so far. */
static unsigned long made_up_opened;

static inline int made_up_open(const struct proc_files *files, pid_t pid)
{
    char name[16];

    made_up_opened++;
    snprintf(name, sizeof(name), "%d", (int)pid);
    if (faccessat(files->directory, name, F_OK, 0) < 0) {
        errno = ESRCH;
        return -1;
    }
    return eventfd(0, EFD_CLOEXEC);
}

static inline void made_up_write(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

/* The facts of the machine: the last number that was given out, and the forks since its boot. */
static inline void made_up_machine(int newest, unsigned long forks)
{
    char text[128];

    mkdir("sys", 0755);
    mkdir("sys/kernel", 0755);
    made_up_write("sys/kernel/pid_max", "32768\n");
    snprintf(text, sizeof(text), "0.00 0.01 0.05 1/300 %d\n", newest);
    made_up_write("loadavg", text);
    snprintf(text, sizeof(text), "cpu 1 2 3\nctxt 5\nprocesses %lu\nprocs_running 1\n", forks);
    made_up_write("stat", text);
}

/* A process without files. Only root can give it to another user. */
static inline void made_up_process(int pid, uid_t uid)
{
    char name[16];

    snprintf(name, sizeof(name), "%d", pid);
    assert_int_equal(mkdir(name, 0755), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(name, uid, (gid_t)-1), 0);
}

static inline void made_up_end(int pid)
{
    char name[16];

    snprintf(name, sizeof(name), "%d", pid);
    assert_int_equal(rmdir(name), 0);
}

#endif
