/* SPDX-License-Identifier: Apache-2.0
 *
 * Confirms the holders of restored leases. The journal knows a holder's pid, which may have become
 * another process's since. A process with this pid that started before the claim is the holder,
 * because the holder had the pid then. Until berth-reader has told when the process started, its
 * lease goes on, and the process gets no signals. A process of another user is not the holder, and
 * no reader touches it. If the process stalls readers, or they do not answer, its user decides: a
 * process of the lease's user is the holder.
 */
#ifndef DAEMON_LEASES_HOLDER_IDENTITY_H
#define DAEMON_LEASES_HOLDER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct pool;

/* Asks about the holders of all leases that are unconfirmed. Their leases end if they are gone. */
void holder_identity_confirm(struct pool *pool);

/* Returns whether a process that started at `started` (CLOCK_BOOTTIME, nanoseconds, cut to a clock
 * tick) is the holder of a claim that was made at `claimed` (the same clock). `known_ticks` is the
 * holder's start in clock ticks, as a former daemon wrote it; 0: unknown. */
bool holder_identity_matches(uint64_t started, int64_t claimed, uint64_t known_ticks);

#endif
