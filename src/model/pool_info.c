/* SPDX-License-Identifier: Apache-2.0 */
#include "model/pool_info.h"

#include <stdlib.h>

#include "base/text/quantity.h"

static const struct choice end_descriptions[] = {
    {"released by its holder", LEASE_END_RELEASED},
    {"its holder ended", LEASE_END_DIED},
    {"the time limit", LEASE_END_EXPIRED},
    {"preempted by another claim", LEASE_END_REVOKED},
    {"released by request", LEASE_END_STOPPED},
    {"cancelled", LEASE_END_CANCELLED},
    {"not granted in time", LEASE_END_TIMED_OUT},
    {"no device of this pool can serve it any more", LEASE_END_IMPOSSIBLE},
    {"the lease around it ended", LEASE_END_PARENT},
    {"it was held but not used", LEASE_END_IDLE},
    {0},
};

const struct choice lease_end_names[] = {
    {"released", LEASE_END_RELEASED},
    {"died", LEASE_END_DIED},
    {"expired", LEASE_END_EXPIRED},
    {"revoked", LEASE_END_REVOKED},
    {"stopped", LEASE_END_STOPPED},
    {"cancelled", LEASE_END_CANCELLED},
    {"timed_out", LEASE_END_TIMED_OUT},
    {"impossible", LEASE_END_IMPOSSIBLE},
    {"parent", LEASE_END_PARENT},
    {"idle", LEASE_END_IDLE},
    {0},
};

const int64_t histogram_bounds[HISTOGRAM_BUCKETS - 1] = {
    DURATION_SECOND / 10, DURATION_SECOND,      10 * DURATION_SECOND, DURATION_MINUTE,
    5 * DURATION_MINUTE,  15 * DURATION_MINUTE, DURATION_HOUR,        4 * DURATION_HOUR,
    12 * DURATION_HOUR,   24 * DURATION_HOUR,   72 * DURATION_HOUR,   168 * DURATION_HOUR,
};

const struct choice slot_state_names[] = {
    {"free", SLOT_STATE_FREE},
    {"leased", SLOT_STATE_LEASED},
    {"shared", SLOT_STATE_SHARED},
    {"draining", SLOT_STATE_DRAINING},
    {"drained", SLOT_STATE_DRAINED},
    {"sick", SLOT_STATE_SICK},
    {"squatted", SLOT_STATE_SQUATTED},
    {"elsewhere", SLOT_STATE_ELSEWHERE},
    {"asleep", SLOT_STATE_ASLEEP},
    {"gone", SLOT_STATE_GONE},
    {0},
};

const char *pool_info_describe_end(enum lease_end end)
{
    const char *words = choice_name(end_descriptions, (int)end);

    return words == NULL ? "it ended" : words;
}

void pool_info_finish_about(struct pool_about *about)
{
    free(about->pool);
    free(about->socket);
    free(about->inventory);
    free(about->version_text);
    free(about->history);
    *about = (struct pool_about){0};
}

static void finish_lease(struct lease_info *lease)
{
    free(lease->name);
    free(lease->command);
    vector_finish(&lease->devices);
}

void pool_info_finish_ended(struct ended_lease *ended)
{
    if (ended->lease != NULL)
        finish_lease(ended->lease);
    free(ended->lease);
    *ended = (struct ended_lease){0};
}

void pool_info_finish_snapshot(struct pool_snapshot *snapshot)
{
    struct slot_info *slot;
    struct lease_info *lease;
    struct claim_info *claim;

    vector_for_each (slot, &snapshot->slots) {
        if (slot->device != NULL)
            device_finish(slot->device);
        free(slot->device);
        free(slot->reason);
    }
    vector_for_each (lease, &snapshot->leases)
        finish_lease(lease);
    vector_for_each (claim, &snapshot->claims) {
        free(claim->name);
        free(claim->command);
        free(claim->request);
        free(claim->why);
    }
    vector_finish(&snapshot->slots);
    vector_finish(&snapshot->leases);
    vector_finish(&snapshot->claims);
    machine_report_finish_problems(&snapshot->problems);
    *snapshot = (struct pool_snapshot){0};
}
