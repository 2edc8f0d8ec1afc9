/* SPDX-License-Identifier: Apache-2.0
 *
 * weighted: the slots that, served once more, would have had the least for their weight. So no slot
 * falls a whole turn behind its share of all turns, and whenever the turns come out even the shares
 * are exact. It goes by all turns there ever were: what a slot missed while it was away, it makes
 * up for.
 */
#include "engine/policy/policies.h"
#include "engine/policy/policy_terms.h"

/* Holds every product of a count and a weight, so that fractions are compared exactly. */
__extension__ typedef unsigned __int128 wide;

static wide weight_of(struct policy_slot slot)
{
    return slot.weight == 0 ? 1 : slot.weight;
}

static int compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other)
{
    struct policy_slot first = policy_terms_slot(question, one);
    struct policy_slot second = policy_terms_slot(question, other);
    wide left = ((wide)first.served + 1) * weight_of(second);
    wide right = ((wide)second.served + 1) * weight_of(first);

    (void)policy;
    return (left > right) - (left < right);
}

const struct policy policy_weighted = {
    .name = "weighted",
    .summary = "the slots that had the least for their weight",
    .compare = compare,
};
