/* SPDX-License-Identifier: Apache-2.0 */
#include "model/policy.h"

#include <stdbool.h>

static bool has_affinity(const struct policy_question *question, size_t slot)
{
    return question->affinity != 0 && question->slots != NULL &&
           question->slots[slot].affinity == question->affinity;
}

int policy_compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other)
{
    int order = bitset_has(question->avoided, one) - bitset_has(question->avoided, other);

    if (order == 0 && policy->compare != NULL)
        order = policy->compare(policy, question, one, other);
    if (order == 0)
        order = has_affinity(question, other) - has_affinity(question, one);
    if (order == 0)
        order = (one > other) - (one < other);
    return order;
}

/* The best candidate that is not chosen yet; there is one. */
static size_t best_left(const struct policy *policy, const struct policy_question *question,
                        const struct bitset *chosen)
{
    size_t best = question->candidates->size;

    bitset_for_each (slot, question->candidates) {
        if (bitset_has(chosen, slot))
            continue;
        if (best == question->candidates->size || policy_compare(policy, question, slot, best) < 0)
            best = slot;
    }
    return best;
}

int policy_choose(const struct policy *policy, const struct policy_question *question,
                  struct bitset *ret_chosen)
{
    if (policy->choose != NULL)
        return policy->choose(policy, question, ret_chosen);
    bitset_unite(ret_chosen, question->required);
    for (size_t left = question->count - bitset_count(ret_chosen); left > 0; left--)
        bitset_add(ret_chosen, best_left(policy, question, ret_chosen));
    return 0;
}
