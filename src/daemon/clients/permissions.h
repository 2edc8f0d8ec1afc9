/* SPDX-License-Identifier: Apache-2.0
 *
 * The rights of clients. Clients are identified by SO_PEERCRED.
 */
#ifndef DAEMON_CLIENTS_PERMISSIONS_H
#define DAEMON_CLIENTS_PERMISSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;

/* Returns whether the client is root or the pool's owner. The configuration limits them only by
 * name. */
bool permissions_is_owner(const struct connection *connection);

/* Returns whether the client has the owner's rights over all leases and devices. */
bool permissions_is_admin(struct connection *connection);

/* Returns whether the client may end and change the leases of this user. A user may do so with the
 * leases of the uids that count as this user, but not the other way round. */
bool permissions_may_decide(struct connection *connection, uint32_t uid);

/* Returns whether the client may use --priority high. */
bool permissions_may_use_high(struct connection *connection);

/* Returns the maximum time limit of the client's leases; 0: none. */
int64_t permissions_max_time(struct connection *connection);

/* Returns all groups of the client, its primary group first; valid as long as the connection. */
const uint32_t *permissions_groups(struct connection *connection, size_t *ret_count);

#endif
