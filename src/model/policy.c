/* SPDX-License-Identifier: Apache-2.0 */
#include "model/policy.h"

#include <assert.h>
#include <berth/error.h>
#include <stdbool.h>
#include <stdlib.h>

/* Up to this many places are filled without allocating. */
enum { FEW_PLACES = 64 };

static bool has_affinity(const struct policy_question *question, size_t slot)
{
    return question->affinity != 0 && question->slots != NULL &&
           question->slots[slot].affinity == question->affinity;
}

/* Returns a sort key: the best rank first, slots without a rank last. */
static uint32_t order_of_rank(const struct policy_question *question, size_t slot)
{
    return question->slots[slot].rank != 0 ? question->slots[slot].rank - 1 : UINT32_MAX;
}

static int compare_ranks(const struct policy_question *question, size_t one, size_t other)
{
    uint32_t first = order_of_rank(question, one);
    uint32_t second = order_of_rank(question, other);

    return (first > second) - (first < second);
}

int policy_compare_equals(const struct policy_question *question, size_t one, size_t other)
{
    int order = question->ranked ? compare_ranks(question, one, other) : 0;

    if (order == 0)
        order = has_affinity(question, other) - has_affinity(question, one);
    if (order == 0)
        order = (one > other) - (one < other);
    return order;
}

int policy_compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other)
{
    int order = bitset_has(question->avoided, one) - bitset_has(question->avoided, other);

    if (order == 0 && policy->compare != NULL)
        order = policy->compare(policy, question, one, other);
    return order != 0 ? order : policy_compare_equals(question, one, other);
}

/* Returns the number of places that the required slots leave. */
static size_t count_places_left(const struct policy_question *question)
{
    return question->count - bitset_count(question->required);
}

/* Returns whether the lowest slots can be chosen without comparing: policy, ranks and affinity have
 * no preference, or there is nothing left to decide. */
static bool can_choose_lowest(const struct policy *policy, const struct policy_question *question)
{
    if (policy->compare == NULL && !question->ranked &&
        (question->affinity == 0 || question->slots == NULL))
        return true;
    return count_places_left(question) == 0 ||
           question->count == bitset_count(question->candidates);
}

/* Adds the lowest candidates, either the avoided ones or the others, while places are left. Returns
 * the number of places that are left. */
static size_t add_lowest(const struct policy_question *question, bool avoided, size_t left,
                         struct bitset *chosen)
{
    bitset_for_each (slot, question->candidates) {
        if (left == 0)
            break;
        if (bitset_has(question->avoided, slot) != avoided || bitset_has(chosen, slot))
            continue;
        bitset_add(chosen, slot);
        left--;
    }
    return left;
}

static void choose_lowest(const struct policy_question *question, struct bitset *ret_chosen)
{
    size_t left = count_places_left(question);

    bitset_unite(ret_chosen, question->required);
    left = add_lowest(question, false, left, ret_chosen);
    add_lowest(question, true, left, ret_chosen);
}

/* The best slots found so far: a heap with the worst of them on top. */
struct best {
    const struct policy *policy;
    const struct policy_question *question;
    size_t *slots;
    size_t count;
    size_t max; /* above 0 */
};

static bool is_worse(const struct best *best, size_t one, size_t other)
{
    return policy_compare(best->policy, best->question, one, other) > 0;
}

static void best_add(struct best *best, size_t slot)
{
    size_t at = best->count++;

    while (at > 0 && is_worse(best, slot, best->slots[(at - 1) / 2])) {
        best->slots[at] = best->slots[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    best->slots[at] = slot;
}

static void best_replace_worst(struct best *best, size_t slot)
{
    size_t at = 0;

    for (size_t child = 1; child < best->count; child = 2 * at + 1) {
        if (child + 1 < best->count && is_worse(best, best->slots[child + 1], best->slots[child]))
            child++;
        if (!is_worse(best, best->slots[child], slot))
            break;
        best->slots[at] = best->slots[child];
        at = child;
    }
    best->slots[at] = slot;
}

static void best_offer(struct best *best, size_t slot)
{
    if (best->count < best->max)
        best_add(best, slot);
    else if (is_worse(best, best->slots[0], slot))
        best_replace_worst(best, slot);
}

static int choose_best(const struct policy *policy, const struct policy_question *question,
                       struct bitset *ret_chosen)
{
    size_t few[FEW_PLACES];
    struct best best = {
        .policy = policy,
        .question = question,
        .slots = few,
        .max = count_places_left(question),
    };

    assert(best.max > 0);
    if (best.max > FEW_PLACES) {
        best.slots = calloc(best.max, sizeof(*best.slots));
        if (best.slots == NULL)
            return BERTH_ERROR_MEMORY;
    }
    bitset_for_each (slot, question->candidates) {
        if (!bitset_has(question->required, slot))
            best_offer(&best, slot);
    }
    bitset_unite(ret_chosen, question->required);
    for (size_t i = 0; i < best.count; i++)
        bitset_add(ret_chosen, best.slots[i]);
    if (best.slots != few)
        free(best.slots);
    return 0;
}

int policy_choose(const struct policy *policy, const struct policy_question *question,
                  struct bitset *ret_chosen)
{
    if (policy->choose != NULL)
        return policy->choose(policy, question, ret_chosen);
    if (can_choose_lowest(policy, question)) {
        choose_lowest(question, ret_chosen);
        return 0;
    }
    return choose_best(policy, question, ret_chosen);
}
