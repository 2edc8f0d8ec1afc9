/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may do what. Only the kernel's word about a client counts, never its own.
 */
#ifndef DAEMON_RIGHTS_H
#define DAEMON_RIGHTS_H

#include "daemon/pool.h"

/* Whether the client is root or the pool's owner: nothing of the rules holds them back, unless it
 * names them. */
bool rights_is_owner(const struct connection *connection);

/* Whether the client may do what the pool's owner may: with everybody's leases, and with devices.
 */
bool rights_is_admin(struct connection *connection);

/* Whether the client may decide about what belongs to this user. */
bool rights_may_decide(struct connection *connection, uint32_t uid);

/* Whether the client may use --priority high. */
bool rights_may_use_high(struct connection *connection);

/* The longest that the client may hold a lease; 0: as long as it likes. */
int64_t rights_longest_time(struct connection *connection);

/* All groups of the client, its own first, good as long as the connection is. */
const uint32_t *rights_groups(struct connection *connection, size_t *ret_count);

#endif
