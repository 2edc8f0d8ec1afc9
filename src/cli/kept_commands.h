/* SPDX-License-Identifier: Apache-2.0
 *
 * The command lines of the user's own leases in pools of several users, where the shared history
 * may have only the programs' names: $XDG_STATE_HOME/berth/commands, readable only by the user.
 * When the file is full, it becomes commands.old, which replaces the previous one. A line is a
 * pool, the id of a lease, and the command line, with blanks between them.
 */
#ifndef CLI_KEPT_COMMANDS_H
#define CLI_KEPT_COMMANDS_H

#include <berth/error.h>
#include <stdint.h>

#include "base/vector.h"
#include "cli/claim.h"
#include "client/pool_address.h"

/* The size of a full file, in bytes. */
#define KEPT_COMMANDS_FULL (512 * 1024)

/* Adds the command line of a granted claim, unless the pool is the user's own. Ignores failures,
 * after which berth history shows only the program's name. Blocks on the disk. */
void kept_commands_add(const struct pool_address *address, const struct client_claim *claim);

struct kept_command {
    char *pool;
    uint64_t id;
    char *command;
};

struct kept_commands {
    VECTOR_OF(struct kept_command); /* sorted */
};

/* Reads both files; missing and unreadable ones count as empty. Fails with BERTH_ERROR_MEMORY. */
int kept_commands_read(struct kept_commands *ret_kept, struct berth_error *error);
void kept_commands_finish(struct kept_commands *kept);

/* Returns the command line of this lease if it is known and runs the program of `recorded`, which
 * is the history's command; otherwise NULL. The string belongs to `kept`. */
const char *kept_commands_find(const struct kept_commands *kept, const char *pool, uint64_t id,
                               const char *recorded);

#endif
