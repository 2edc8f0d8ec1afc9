/* SPDX-License-Identifier: Apache-2.0
 *
 * A child of ours that becomes a user before it becomes a program: with that user's groups, and
 * with none of our rights.
 */
#ifndef DAEMON_PERSONA_H
#define DAEMON_PERSONA_H

#include <stdbool.h>
#include <stdint.h>

/* The group of a user is not known. */
#define PERSONA_NO_GROUP UINT32_MAX

struct persona {
    uint32_t uid;
    uint32_t gid; /* where the user database does not know the user; PERSONA_NO_GROUP */
};

/* Whether it is somebody else than we are. */
bool persona_is_other(const struct persona *persona);

/* Only in a child: becomes the user for good, and gives up every right of ours. Asks the user
 * database, so it may take long. *ret_home is the user's home, good until the database is asked
 * again; NULL: not known. Returns 0 or an errno. */
int persona_become(const struct persona *persona, const char **ret_home);

#endif
