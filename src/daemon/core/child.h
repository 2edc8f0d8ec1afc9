/* SPDX-License-Identifier: Apache-2.0
 *
 * A program as a child of the daemon: starts without blocking, in a session of its own, with a pipe
 * as output and a short text as input or none. The kernel kills it when the daemon dies, unless the
 * order says that it outlives the daemon.
 */
#ifndef DAEMON_CORE_CHILD_H
#define DAEMON_CORE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/string_list.h"
#include "daemon/core/become_user.h"
#include "daemon/core/launcher.h"

struct child {
    pid_t pid;   /* leads its process group; 0: not started */
    int process; /* a pidfd: readable after its end */
    int output;  /* the end of a pipe; does not block */
    int report;  /* the end of a pipe: the errno of a child that cannot execute */
};

struct child_end {
    int failure;    /* the errno of a child that cannot execute; 0: none */
    bool is_killed; /* number is a signal instead of an exit code */
    int number;
};

struct child_order {
    char *const *words;       /* the path of the program, its arguments, NULL */
    char *const *environment; /* NAME=VALUE, NULL */
    const char *input;        /* less than a page; NULL: none */
    const int *connection;    /* a descriptor for its input instead; NULL: none */
    bool outlives;            /* is not killed when the daemon dies */
    bool may_signal;          /* gets CAP_KILL, if the daemon has it; otherwise no capability */

    /* The launcher starts the child as this user, without capabilities. */
    struct launcher *launcher;     /* NULL: the daemon starts it as its own user */
    enum launcher_program program; /* whose entry calls child_execute() */
    struct user_identity persona;
    const char *awaited; /* a file whose creation the child waits for, at most 1 s; NULL: none */
};

/* Starts the program. Returns 0 or an errno; then nothing stays open. child_reap() reports whether
 * the child could execute the program. */
int child_start(struct child *offspring, const struct child_order *order);

/* Kills its process group. */
void child_kill(const struct child *offspring);

/* Reaps the child; returns false while it runs. The caller closes the descriptors. */
bool child_reap(const struct child *offspring, struct child_end *ret_end);

/* Kills and reaps a child that has just started, and closes its descriptors. */
void child_undo(struct child *offspring);

/* An order as the launcher got it. */
struct child_work {
    const struct launcher_work *work;
    struct string_list strings; /* ends with NULL */
    struct child_order order;   /* refers to `strings` */
};

/* Decodes an order. The strings are never freed, because the process ends soon. Returns 0 or an
 * errno, for child_execute(). */
int child_read_work(const struct launcher_work *work, struct child_work *ret_work);
/* Executes the order's program, or ends the process and tells the daemon `failure`, an errno; 0:
 * none. */
_Noreturn void child_execute(const struct child_work *work, int failure);

#endif
