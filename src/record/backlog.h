/* SPDX-License-Identifier: Apache-2.0
 *
 * Ended leases that are not in the file yet. There may be very many while the file cannot be
 * written: beyond a limit, the user with the most data loses the oldest ones, which are only
 * counted. Zeroed memory is an empty backlog.
 */
#ifndef RECORD_BACKLOG_H
#define RECORD_BACKLOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/pool_info.h"

/* The approximate maximum in bytes. */
#define BACKLOG_BYTES_MAX ((size_t)32 * 1024 * 1024)

/* The memory of one user's leases. */
struct backlog_share {
    uint32_t uid;
    size_t bytes;
};

struct backlog {
    VECTOR_OF(struct ended_lease);
    struct {
        VECTOR_OF(struct backlog_share);
    } shares;
    size_t bytes;
    size_t bytes_max; /* at most BACKLOG_BYTES_MAX; 0: that */
    uint64_t dropped; /* number of leases dropped since the last write */
};

/* Takes over the lease with everything that it owns; *ended is zeroed. */
void backlog_add(struct backlog *backlog, struct ended_lease *ended);

/* Removes all leases: they are in the file now. */
void backlog_clear(struct backlog *backlog);

#endif
