/* SPDX-License-Identifier: Apache-2.0
 *
 * What the daemon may do to the processes of others. A daemon for everybody needs these of root's
 * rights: to signal everybody's processes (CAP_KILL), to see of which lease they are and which
 * devices they use (CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH), and to run MPS control daemons as the
 * users that they are for (CAP_SETUID and CAP_SETGID).
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
 * we have them; in the programs that we start only those to signal and to see. Fails with
 * BERTH_ERROR_PERMISSION or _IO; the process is good for nothing then. */
int privileges_become(const struct privileges_user *user, struct berth_error *error);

/* What was given to us and to the programs that we start, and is for us alone, they do not get. */
void privileges_keep_private(void);

/* Whether programs can be run as other users. */
bool privileges_may_become_others(void);

/* In a child: gives up all rights for good. Returns 0, or -1 with errno. */
int privileges_give_up(void);

/* Writes into the log what the daemon may do. */
void privileges_say(struct pool *pool);

#endif
