/* SPDX-License-Identifier: Apache-2.0
 *
 * least-loaded: the slots with the least work, and of these the least utilised. Work is what is
 * known at once: what a program reported, leases, and advice that was given a moment ago; a
 * utilisation is always late.
 */
#include "engine/policy/policies.h"
#include "engine/policy/policy_terms.h"

/* Reported work may be any number, so the sum stops at the top. */
static uint64_t work_of(struct policy_slot slot)
{
    uint64_t work;

    if (__builtin_add_overflow(slot.queued, slot.active, &work) ||
        __builtin_add_overflow(work, (uint64_t)slot.tenants + slot.picks, &work))
        return UINT64_MAX;
    return work;
}

static int compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other)
{
    int order = policy_terms_lower(work_of(policy_terms_slot(question, one)),
                                   work_of(policy_terms_slot(question, other)));

    (void)policy;
    if (order != 0)
        return order;
    return policy_terms_lower_known(
        policy_terms_figure(policy_terms_device(question, one)->load.utilization),
        policy_terms_figure(policy_terms_device(question, other)->load.utilization));
}

const struct policy policy_least_loaded = {
    .name = "least-loaded",
    .summary = "the slots with the least work, then the least utilised",
    .compare = compare,
};
