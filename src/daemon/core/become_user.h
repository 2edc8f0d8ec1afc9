/* SPDX-License-Identifier: Apache-2.0
 *
 * A child process that becomes a user before it executes a program: with the user's groups and
 * without any capability.
 */
#ifndef DAEMON_CORE_BECOME_USER_H
#define DAEMON_CORE_BECOME_USER_H

#include <stdbool.h>
#include <stdint.h>

/* The group of a user is not known. */
#define USER_IDENTITY_NO_GROUP UINT32_MAX

struct user_identity {
    uint32_t uid;
    uint32_t gid; /* for a user that the user database lacks; may be USER_IDENTITY_NO_GROUP */
};

/* Returns whether the user is not the effective user of this process. */
bool become_user_is_other(const struct user_identity *persona);

/* Changes this process to the user for good and drops all capabilities, except those of root for
 * root. Only for child processes: asks the user database, which may block for long. Sets *ret_home
 * to the user's home, valid until the next question to the database; NULL: not known. Returns 0 or
 * an errno. */
int become_user_apply(const struct user_identity *persona, const char **ret_home);

#endif
