/* SPDX-License-Identifier: Apache-2.0
 *
 * Two pools on one machine never give out the same device: while one is leased, its daemon holds a
 * kernel-wide name for it, an abstract socket that listens and is gone with the process. A name
 * that is taken reads as "held by another pool"; who waits for it connects to it, and hears the end
 * of that connection when it is let go.
 *
 * The names of free devices are taken before a claim is decided, and given back when another pool
 * asks or nothing happened for a moment, so that they cost a busy pool nothing. Whoever holds the
 * name of a device that is not leased lets it go at once when asked.
 */
#ifndef DAEMON_NAMES_H
#define DAEMON_NAMES_H

#include "daemon/pool.h"

/* Names for the devices of the engine's machine, and for those that it has room for; takes those of
 * restored leases. Pools with room for more devices than that have none. */
#define NAMES_MAX 1024
int names_init(struct pool *pool, struct berth_error *error);
void names_finish(struct pool *pool);

/* A device has come, or has another address than before. In a pause of the engine: what is free and
 * unblocked is granted at once to who waits, so the name comes first. */
void names_add(struct pool *pool, uint32_t slot);

/* Before a claim or a test is decided: takes the names of free devices. Returns true when another
 * pool has still to say whether it uses what we want. */
bool names_are_unsettled(struct pool *pool);
/* Whether that is so still. */
bool names_are_awaited(const struct pool *pool);

/* Leases came or went. */
void names_update(struct pool *pool);

#endif
