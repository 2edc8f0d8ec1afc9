/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts a program that is independent of the caller: neither its child nor in its session.
 */
#ifndef BASE_SYSTEM_SPAWN_DETACHED_H
#define BASE_SYSTEM_SPAWN_DETACHED_H

#include <berth/error.h>
#include <stdbool.h>

/* The name in LISTEN_FDNAMES of a socket that belongs to the program, which must remove its
 * path. */
#define DETACHED_LISTENER "detached"

struct detached_program {
    const char *program;
    char *const *arguments; /* terminated by NULL */
    int input;              /* becomes stdin; -1: /dev/null */
    int output;             /* becomes stdout; -1: /dev/null */
    int log;                /* becomes stderr; -1: /dev/null */
    int listening; /* becomes descriptor 3, a listening socket passed as systemd does (LISTEN_FDS,
                      LISTEN_PID, LISTEN_FDNAMES); -1: none */

    /* The program keeps the caller's working directory and file-mode mask. */
    bool here;

    /* Variables as NAME=VALUE, which replace the caller's; terminated by NULL. NULL: none. */
    char *const *added;

    /* Names of variables, each list terminated by NULL; NULL: none. */
    const char *const *dropped; /* not passed on */
    const char *const *paths;   /* file names: a relative path is made absolute, because the program
                                   starts in another directory */
};

/* Starts the program in the root directory with the file-mode mask 077, unless `here` is set. The
 * program is in a session that it does not lead, has no terminal and no other descriptors, blocks
 * and ignores no signal, and has the caller's environment with the changes above. The caller gets
 * no SIGCHLD, and no child that its wait() would find. Memory is not copied, so a large process may
 * call this. Returns once the program runs. Fails with BERTH_ERROR_NOT_FOUND, _PERMISSION, _IO or
 * _MEMORY. Any thread may call it. */
int spawn_detached(const struct detached_program *detached, struct berth_error *error);

#endif
