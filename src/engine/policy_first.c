/* SPDX-License-Identifier: Apache-2.0
 *
 * first: the lowest slots, but what is to be avoided last.
 */
#include "engine/policies.h"

/* Takes members of `from`, lowest first, until `count` are chosen. With `skip`, not its members. */
static void take_lowest(struct bitset *chosen, const struct bitset *from, const struct bitset *skip,
                        size_t count)
{
    size_t taken = bitset_count(chosen);

    bitset_for_each (slot, from) {
        if (taken == count)
            return;
        if (bitset_has(chosen, slot) || (skip != NULL && bitset_has(skip, slot)))
            continue;
        bitset_add(chosen, slot);
        taken++;
    }
}

static int choose(const struct policy_question *question, struct bitset *ret_chosen)
{
    bitset_unite(ret_chosen, question->required);
    take_lowest(ret_chosen, question->candidates, question->avoided, question->count);
    take_lowest(ret_chosen, question->candidates, NULL, question->count);
    return 0;
}

const struct policy policy_first = {
    .name = "first",
    .summary = "the lowest slots",
    .choose = choose,
};
