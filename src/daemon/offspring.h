/* SPDX-License-Identifier: Apache-2.0
 *
 * A program as a child of the daemon: started without waiting for anything, in a session of its
 * own, with a pipe as output and a few words as input or none. It is killed when the daemon dies,
 * unless it is to outlive it.
 */
#ifndef DAEMON_OFFSPRING_H
#define DAEMON_OFFSPRING_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/persona.h"

struct offspring {
    pid_t pid;   /* leads its process group; 0: it was not started */
    int process; /* pidfd: readable once it has ended */
    int output;  /* what it prints; does not block */
    int report;  /* where the child says that it could not become the program */
};

struct offspring_end {
    int failure;    /* the errno of one that could not become the program; 0: it did */
    bool is_killed; /* number is a signal, not an exit code */
    int number;
};

struct offspring_order {
    char *const *words;            /* the program by its path, and arguments; ended by NULL */
    char *const *environment;      /* ended by NULL */
    const struct persona *persona; /* whom it is run as; NULL: as us, with our rights */
    const char *input;             /* what it reads, less than a page; NULL: nothing */
    const int *connection;         /* what it reads from instead: a descriptor; NULL: none */
    bool outlives;                 /* it ends by itself when we have, and is not killed then */
    const char *awaited; /* a file that it is not begun without, for a second; NULL: none */
};

/* Starts the program. Returns 0 or an errno with nothing left open. Whether it could become the
 * program, its end says. */
int offspring_start(struct offspring *offspring, const struct offspring_order *order);

/* Kills it with all of its process group. */
void offspring_kill(const struct offspring *offspring);

/* Takes note of its end; false: it has not ended. The descriptors stay the caller's to close. */
bool offspring_reap(const struct offspring *offspring, struct offspring_end *ret_end);

/* Kills one that has only just begun, and closes all. */
void offspring_undo(struct offspring *offspring);

#endif
