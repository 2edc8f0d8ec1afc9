/* SPDX-License-Identifier: Apache-2.0
 *
 * A program started so that nothing of ours is left in it: not our child, not in our session, and
 * with a socket to listen on as systemd would hand it over.
 */
#ifndef CLIENT_DETACHED_H
#define CLIENT_DETACHED_H

#include <berth/error.h>

struct detached {
    const char *program;
    char *const *arguments; /* ended by NULL */
    int output;             /* becomes stdout */
    int log;                /* becomes stderr */
    int listening;          /* becomes descriptor 3 */
};

/* Starts it in the root directory, in a session that it does not lead, without a terminal, with no
 * other descriptors, no signal blocked or ignored, a file-mode mask of 077, and our environment
 * without what belongs to a lease or a service: the masks of devices, BERTH_LEASE and the like. The
 * process gets no SIGCHLD and no child that a wait() of its own would find; memory is not copied,
 * so a large program may do this. Returns once the program runs. Fails with BERTH_ERROR_NOT_FOUND,
 * _PERMISSION, _IO or _MEMORY. Any thread may call it. */
int detached_start(const struct detached *detached, struct berth_error *error);

#endif
