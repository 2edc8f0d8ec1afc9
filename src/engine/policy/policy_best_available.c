/* SPDX-License-Identifier: Apache-2.0
 *
 * best-available: the slots with the most free memory, and of equals the less used.
 */
#include "engine/policy/policies.h"
#include "engine/policy/policy_terms.h"

static uint64_t users_of(struct policy_slot slot)
{
    return (uint64_t)slot.tenants + slot.picks;
}

static int compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other)
{
    int order = policy_terms_higher_known(
        policy_terms_figure(policy_terms_device(question, one)->load.memory_free),
        policy_terms_figure(policy_terms_device(question, other)->load.memory_free));

    (void)policy;
    if (order != 0)
        return order;
    return policy_terms_lower(users_of(policy_terms_slot(question, one)),
                              users_of(policy_terms_slot(question, other)));
}

const struct policy policy_best_available = {
    .name = "best-available",
    .summary = "the slots with the most free memory",
    .compare = compare,
};
