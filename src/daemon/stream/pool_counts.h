/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts of claims and leases since the daemon's start, for its readers.
 */
#ifndef DAEMON_STREAM_POOL_COUNTS_H
#define DAEMON_STREAM_POOL_COUNTS_H

#include <stdint.h>

#include "model/pool_info.h"

/* Must not be moved in memory after pool_counts_init(). */
struct pool_counts {
    struct pool_tally tally;
    struct duration_histogram waited;
    struct duration_histogram held;
};

void pool_counts_init(struct pool_counts *counts);

/* Counts a claim that became a lease after waiting for so long. */
void pool_counts_add_granted(struct pool_counts *counts, int64_t waited);
/* Counts a lease that ended after it was held for so long. */
void pool_counts_add_held(struct pool_counts *counts, int64_t held);
/* Counts a claim that was refused at once, with this error code. */
void pool_counts_add_refused(struct pool_counts *counts, int error);
/* Counts a claim that waited and ended without a lease. */
void pool_counts_add_gone(struct pool_counts *counts, enum lease_end end);

#endif
