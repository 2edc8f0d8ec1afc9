/* SPDX-License-Identifier: Apache-2.0
 *
 * A program started so that nothing of ours is left in it: not our child, not in our session.
 */
#ifndef BASE_SYSTEM_SPAWN_DETACHED_H
#define BASE_SYSTEM_SPAWN_DETACHED_H

#include <berth/error.h>
#include <stdbool.h>

/* The name in LISTEN_FDNAMES of a socket that nobody but the program needs from then on: its path
 * is the program's to remove. */
#define DETACHED_LISTENER "detached"

struct detached_program {
    const char *program;
    char *const *arguments; /* ended by NULL */
    int input;              /* becomes stdin; -1: nothing */
    int output;             /* becomes stdout; -1: nothing */
    int log;                /* becomes stderr; -1: nothing */
    int listening; /* becomes descriptor 3, a socket to listen on as systemd would hand it over
                      (LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES); -1: none */

    /* The program starts where we are, and with our file-mode mask. */
    bool here;

    /* Variables as NAME=VALUE, ended by NULL, in the place of ours of the same names; NULL: none.
     */
    char *const *added;

    /* Names of variables, each list ended by NULL; NULL: none. */
    const char *const *dropped; /* are not passed on */
    const char *const *paths;   /* name files: a relative path is made absolute, since the program
                                   starts elsewhere */
};

/* Starts it in the root directory with a file-mode mask of 077, unless `here`; in a session that it
 * does not lead, without a terminal, with no other descriptors, no signal blocked or ignored, and
 * our environment as `detached` says. The process gets no SIGCHLD and no child that a wait() of its
 * own would find; memory is not copied, so a large program may do this. Returns once the program
 * runs. Fails with BERTH_ERROR_NOT_FOUND, _PERMISSION, _IO or _MEMORY. Any thread may call it. */
int spawn_detached(const struct detached_program *detached, struct berth_error *error);

#endif
