/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/stream/pool_counts.h"

#include <berth/error.h>

void pool_counts_init(struct pool_counts *counts)
{
    *counts = (struct pool_counts){0};
    counts->tally.waited = &counts->waited;
    counts->tally.held = &counts->held;
}

static void add_duration(struct duration_histogram *histogram, int64_t duration)
{
    unsigned bucket = 0;

    if (duration < 0)
        duration = 0;
    while (bucket < HISTOGRAM_BUCKETS - 1 && duration > histogram_bounds[bucket])
        bucket++;
    histogram->counts[bucket]++;
    histogram->sum += (uint64_t)duration;
}

void pool_counts_add_granted(struct pool_counts *counts, int64_t waited)
{
    counts->tally.granted++;
    add_duration(&counts->waited, waited);
}

void pool_counts_add_held(struct pool_counts *counts, int64_t held)
{
    add_duration(&counts->held, held);
}

void pool_counts_add_refused(struct pool_counts *counts, int error)
{
    if (error == BERTH_ERROR_BUSY)
        counts->tally.busy++;
    else if (error == BERTH_ERROR_IMPOSSIBLE || error == BERTH_ERROR_NO_DEVICE)
        counts->tally.impossible++;
    else
        counts->tally.refused++;
}

void pool_counts_add_gone(struct pool_counts *counts, enum lease_end end)
{
    if (end == LEASE_END_TIMED_OUT)
        counts->tally.timed_out++;
    else if (end == LEASE_END_IMPOSSIBLE)
        counts->tally.impossible++;
    else
        counts->tally.cancelled++;
}
