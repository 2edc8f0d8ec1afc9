/* SPDX-License-Identifier: Apache-2.0
 *
 * What the daemon may do to the processes of others. A daemon for everybody needs these of root's
 * rights: to signal everybody's processes (CAP_KILL), and to see of which lease they are and which
 * devices they use (CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH).
 */
#ifndef DAEMON_PRIVILEGES_H
#define DAEMON_PRIVILEGES_H

#include <berth/error.h>
#include <sys/types.h>

#include "daemon/pool.h"

/* A user of the machine to become. */
struct privileges_user {
    const char *name; /* the caller's */
    uid_t uid;
    gid_t gid;
};

/* Finds who is to be become; asks the user database, so it may take long. Fails
 * with BERTH_ERROR_INVALID (no such user, root, or we are not root), _IO or _MEMORY. */
int privileges_find_user(const char *name, struct privileges_user *ret_user,
                         struct berth_error *error);

/* Makes the directory of the socket the user's, and what an earlier daemon of root's has left in
 * it. It is made if it is not there. One that is there is given away only when it is no symlink,
 * nobody else may write to it, and it is the user's already or root's with nothing in it but what
 * a daemon leaves. Fails with BERTH_ERROR_PERMISSION, _NOT_FOUND, _IO or _MEMORY. */
int privileges_give_directory(const struct privileges_user *user, const char *socket,
                              struct berth_error *error);

/* Becomes the user for good, with the user's groups: of root's rights those are kept, as far as
 * we have them, here and in the programs that we start. Fails with BERTH_ERROR_PERMISSION or _IO;
 * the process is good for nothing then. */
int privileges_become(const struct privileges_user *user, struct berth_error *error);

/* Writes into the log what the daemon may do. */
void privileges_say(struct pool *pool);

#endif
