/* SPDX-License-Identifier: Apache-2.0
 *
 * The rights of the daemon, and of the programs that it starts. A machine's daemon needs these
 * rights of root:
 *
 *  - CAP_KILL, to signal all users' processes. The daemon keeps it.
 *  - CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, to see which lease a process belongs to and which
 *    devices it uses. Only berth-reader and the /proc reader of berth-probe use them.
 *  - CAP_SETUID and CAP_SETGID, to run MPS control daemons as the users of leases, if the
 *    configuration has `mps: yes`.
 *
 * The daemon hands all but the first over to its launcher (daemon/core/launcher.h). A daemon of
 * root keeps root's rights and has no launcher.
 */
#ifndef DAEMON_PRIVILEGES_H
#define DAEMON_PRIVILEGES_H

#include <berth/error.h>
#include <stdbool.h>
#include <sys/types.h>

struct pool;

/* The user of the machine that --user names. */
struct privileges_user {
    const char *name; /* the caller's */
    uid_t uid;
    gid_t gid;
};

/* Finds the user. Asks the user database, which may block for long. Fails with BERTH_ERROR_INVALID
 * (no such user; root; this process is not root's), _IO or _MEMORY. */
int privileges_find_user(const char *name, struct privileges_user *ret_user,
                         struct berth_error *error);

/* Changes this process to the user for good, with the user's groups. Of root's capabilities it
 * keeps those above, as far as it has them. Fails with BERTH_ERROR_PERMISSION or _IO; the process
 * must end then. */
int privileges_become(const struct privileges_user *user, struct berth_error *error);

/* Starts the launcher if this process has rights for it, and gives these rights up. `mps`: the
 * launcher may become other users. Fills pool->privileges. Fails with BERTH_ERROR_PERMISSION or
 * _IO. */
int privileges_start_launcher(struct pool *pool, bool mps, struct berth_error *error);

/* Ends the launcher, if there is one. */
void privileges_stop_launcher(struct pool *pool);

/* Returns whether programs can be run as other users. */
bool privileges_may_become_others(const struct pool *pool);

/* Logs the daemon's rights, and those that it needs and lacks. */
void privileges_log(struct pool *pool);

/* Makes the rights that the daemon needs and lacks problems of the pool, in place of those of
 * earlier calls. */
void privileges_note_problems(struct pool *pool);

#endif
