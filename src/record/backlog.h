/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases that have ended and are not in the file yet. There may be very many while the file cannot
 * be written: beyond a bound they are only counted. Zeroed memory is an empty one.
 */
#ifndef RECORD_BACKLOG_H
#define RECORD_BACKLOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "wire/wire.h"

/* About how many bytes are kept at most. */
#define BACKLOG_BYTES_MAX (32 * 1024 * 1024)

struct backlog {
    VECTOR_OF(struct ended_lease);
    size_t bytes;
    uint64_t dropped; /* since the last time it was written */
};

/* Takes the lease over, with all that it holds; *ended is zeroed. */
void backlog_add(struct backlog *backlog, struct ended_lease *ended);

/* Forgets those that are in it, which are in the file now. */
void backlog_clear(struct backlog *backlog);

#endif
