/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits the command lines in an answer to those that the client may see, because they may contain
 * secrets. With `show_commands: owner`, a user sees the command lines of that user's own leases and
 * processes, and the program's name of all others. Root, the pool's owner and admins see all.
 */
#ifndef DAEMON_LEASES_VISIBLE_COMMANDS_H
#define DAEMON_LEASES_VISIBLE_COMMANDS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/string_list.h"
#include "base/text/text.h"
#include "base/vector.h"

struct connection;
struct device_process;
struct pool;
struct wire_message;

/* The copies that an answer borrows until it is sent. */
struct visible_commands {
    bool limits;
    uint32_t uid; /* of the client */
    struct string_list names;
    struct {
        VECTOR_OF(struct lease_info *);
    } leases;
};

/* Decides whether the client's answer must be limited. */
void visible_commands_init(struct visible_commands *visible, struct connection *connection);

/* Replaces the command lines in the message's leases, claims and ended leases. Fails with
 * BERTH_ERROR_MEMORY; the message must not be sent then. */
int visible_commands_limit(struct visible_commands *visible, struct wire_message *message,
                           struct berth_error *error);

/* Replaces the command line of a process on a device; `process` is a copy for this answer. Returns
 * 0 or BERTH_ERROR_MEMORY. */
int visible_commands_limit_process(struct visible_commands *visible,
                                   struct device_process *process);

/* Appends the part of a command line that all users may see: all of it, or the program's name.
 * Control characters are replaced. */
void visible_commands_append(const struct pool *pool, const char *command, struct text *out);

/* Frees the copies, after the message was sent. */
void visible_commands_finish(struct visible_commands *visible);

#endif
