/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims and tests that cannot be decided yet: another pool has still to say whether it uses what
 * we want (names.c), or the last look at the hardware is too old to tell who is on it (hardware.c),
 * or was before a lease ended that somebody who does not wait may have the devices of (handover.c).
 * They are dealt with in their order once that is settled, which is never long.
 */
#ifndef DAEMON_POSTPONED_H
#define DAEMON_POSTPONED_H

#include "daemon/pool.h"

/* Before a claim or a test is decided: asks what has to be asked. Returns true when the answers
 * have still to come; the message is then kept and dealt with later. */
bool postponed_take(struct connection *connection, struct wire_message *message);

/* An answer came: deals with all, unless another is still missing. */
void postponed_deal_with(struct pool *pool);

/* The connection is gone: what it asked is not dealt with any more. NULL: of all. */
void postponed_forget(struct pool *pool, const struct connection *connection);

#endif
