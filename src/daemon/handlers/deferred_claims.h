/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims and tests that cannot be decided yet, because another pool must first say whether it uses
 * a device (devices/device_locks.h), the last hardware report is too old (devices/probe_poll.h), or
 * a message that does not wait needs a report of devices in handover (leases/handover.h). They are
 * handled in their order, after a short and limited time.
 */
#ifndef DAEMON_HANDLERS_DEFERRED_CLAIMS_H
#define DAEMON_HANDLERS_DEFERRED_CLAIMS_H

#include <stdbool.h>

struct connection;
struct pool;
struct wire_message;

/* Must be called before a claim or test is decided; requests the missing answers. Returns true if
 * the message must wait for them: it is kept and handled later, or refused. */
bool deferred_claims_take(struct connection *connection, struct wire_message *message);

/* Must be called before a message is handled whose answer depends on which devices are free.
 * Returns true if the processes of ended leases are still searched for: the message is kept, and
 * handled once these searches are over, or after 50 ms. So the next client finds the devices of an
 * ended lease free. */
bool deferred_claims_take_early(struct connection *connection, struct wire_message *message);

/* Handles the early messages whose searches are over. Must be called before each wait of the loop.
 */
void deferred_claims_continue_early(struct pool *pool);

/* Handles the deferred claims and tests whose answers are all there. */
void deferred_claims_continue(struct pool *pool);

/* Drops the messages of a closed connection. NULL: of all connections. */
void deferred_claims_forget(struct pool *pool, const struct connection *connection);

#endif
