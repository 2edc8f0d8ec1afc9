/* SPDX-License-Identifier: Apache-2.0
 *
 * best-compute: the slots with the highest compute capability, and of equals the most memory.
 */
#include "engine/policy/policies.h"
#include "engine/policy/policy_terms.h"

/* A number that is higher for a higher capability. */
static struct optional_number rank_of(struct capability capability)
{
    if (!capability.known)
        return (struct optional_number){0};
    return optional_number_of((uint64_t)capability.major << 16 | capability.minor);
}

static int compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other)
{
    const struct device *first = policy_terms_device(question, one);
    const struct device *second = policy_terms_device(question, other);
    int order = policy_terms_higher_known(rank_of(first->cap), rank_of(second->cap));

    (void)policy;
    return order != 0 ? order
                      : policy_terms_higher_known(first->memory_total, second->memory_total);
}

const struct policy policy_best_compute = {
    .name = "best-compute",
    .summary = "the slots with the highest compute capability, then the most memory",
    .compare = compare,
};
