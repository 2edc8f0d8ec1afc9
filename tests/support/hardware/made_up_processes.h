/* SPDX-License-Identifier: Apache-2.0
 *
 * A made-up /proc in the working directory, which must be temporary, with any number of processes.
 * Their pidfds are eventfds, which say that the process runs. Their users are in the files
 * owners/PID, so that an ordinary user can make processes of others.
 */
#ifndef TESTS_MADE_UP_PROCESSES_H
#define TESTS_MADE_UP_PROCESSES_H

#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
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

/* ---- Users ---- */

/* Gives the process to a user. */
static inline void made_up_chown(int pid, uid_t uid)
{
    char path[32];
    char text[16];

    mkdir("owners", 0755);
    snprintf(path, sizeof(path), "owners/%d", pid);
    snprintf(text, sizeof(text), "%u", (unsigned int)uid);
    made_up_write(path, text);
}

/* Returns whether owners/NAME tells the user. */
static inline bool made_up_owner(int directory, const char *name, uid_t *ret_uid)
{
    char path[64];
    char text[16] = "";
    int file;
    bool is_there;

    snprintf(path, sizeof(path), "owners/%s", name);
    file = openat(directory, path, O_RDONLY | O_CLOEXEC);
    is_there = file >= 0 && read(file, text, sizeof(text) - 1) > 0;
    if (file >= 0)
        close(file);
    if (is_there)
        *ret_uid = (uid_t)strtoul(text, NULL, 10);
    return is_there;
}

int made_up_fstatat(int directory, const char *name, struct stat *status, int flags);

int made_up_fstatat(int directory, const char *name, struct stat *status, int flags)
{
    int file = openat(directory, name, O_PATH | O_CLOEXEC);
    int result = file < 0 ? -1 : fstat(file, status);

    (void)flags;
    if (file >= 0)
        close(file);
    if (result == 0)
        made_up_owner(directory, name, &status->st_uid);
    return result;
}

/* Takes the place of the C library's function in the test program: the user of a made-up process is
 * the one that the test gave it. */
__typeof__(fstatat) fstatat __attribute__((alias("made_up_fstatat")));

/* ---- Processes ---- */

/* A process without files. */
static inline void made_up_process(int pid, uid_t uid)
{
    char name[16];

    snprintf(name, sizeof(name), "%d", pid);
    assert_int_equal(mkdir(name, 0755), 0);
    made_up_chown(pid, uid);
}

/* Ends a process without files. */
static inline void made_up_end(int pid)
{
    char path[32];

    snprintf(path, sizeof(path), "%d", pid);
    assert_int_equal(rmdir(path), 0);
    snprintf(path, sizeof(path), "owners/%d", pid);
    assert_int_equal(unlink(path), 0);
}

/* Gives the process an environment: variables, each followed by a newline. */
static inline void made_up_environment(int pid, const char *variables)
{
    size_t length = strlen(variables);
    char *bytes = strdup(variables);
    char path[32];
    int file;

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(bytes[i] == '\n' ? '\0' : bytes[i]);
    snprintf(path, sizeof(path), "%d/environ", pid);
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, length), (ssize_t)length);
    close(file);
    free(bytes);
}

/* Fields of /proc/PID/stat. */
struct made_up_stat {
    char state; /* 0: S */
    int parent;
    unsigned int flags;
    uint64_t started;         /* ns since boot */
    uint64_t environment_end; /* an address */
    int status;               /* of a process that has ended, as wait() has it */
};

static inline void made_up_stat(int pid, const struct made_up_stat *stat)
{
    enum { PARENT = 4, FLAGS = 9, STARTED = 22, ENVIRONMENT_END = 51, STATUS = 52 };
    uint64_t fields[STATUS + 1] = {
        [PARENT] = (uint64_t)stat->parent,
        [FLAGS] = stat->flags,
        [STARTED] = stat->started / (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK)),
        [ENVIRONMENT_END] = stat->environment_end,
        [STATUS] = (uint64_t)stat->status,
    };
    char text[2048];
    int length = snprintf(text, sizeof(text), "%d (a ) name) %c", pid,
                          stat->state == '\0' ? 'S' : stat->state);
    char path[32];

    for (size_t i = PARENT; i <= STATUS; i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, " %llu",
                           (unsigned long long)fields[i]);
    snprintf(path, sizeof(path), "%d/stat", pid);
    made_up_write(path, text);
}

#endif
