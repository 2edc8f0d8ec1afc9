/* SPDX-License-Identifier: Apache-2.0
 *
 * round-robin: the slots whose turn was longest ago. A pointer that goes round would give the
 * successor of a busy slot two turns; by the time of the last turn, everybody moves up by one, and
 * a slot that comes back is served once and is then the last of all. Slots that were served in one
 * grant have the same time; there the one that served less goes first, else the lowest of them
 * would be in every grant of several devices.
 */
#include "engine/policy/policies.h"
#include "engine/policy/policy_terms.h"

static int compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other)
{
    struct policy_slot first = policy_terms_slot(question, one);
    struct policy_slot second = policy_terms_slot(question, other);
    int order = policy_terms_lower(first.last_served, second.last_served);

    (void)policy;
    return order != 0 ? order : policy_terms_lower(first.served, second.served);
}

const struct policy policy_round_robin = {
    .name = "round-robin",
    .summary = "the slots served longest ago",
    .compare = compare,
};
