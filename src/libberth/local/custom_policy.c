/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/custom_policy.h"

#include <string.h>

#include "libberth/local/local_pool.h"

static int64_t value_of(struct figure figure)
{
    return figure.known ? figure.value : BERTH_UNKNOWN;
}

static size_t gather_candidates(const struct berth_pool *pool,
                                const struct policy_question *question)
{
    size_t count = 0;

    bitset_for_each (slot, question->candidates) {
        const struct load *load = &question->machine->devices.items[slot].load;
        struct berth_candidate candidate = {
            .slot = slot,
            .load = {.memory_free = value_of(load->memory_free),
                     .utilization = value_of(load->utilization)},
            .avoid = bitset_has(question->avoided, slot),
        };

        if (question->slots != NULL) {
            candidate.queued = question->slots[slot].queued;
            candidate.active = question->slots[slot].active;
            candidate.tenants = question->slots[slot].tenants;
        }
        pool->candidates[count++] = candidate;
    }
    return count;
}

/* Corrects the size of the choice: required slots first, then chosen ones, then the lowest. */
static void complete_choice(const struct berth_pool *pool, const struct policy_question *question,
                            size_t count, struct bitset *ret_chosen)
{
    size_t left = question->count;

    bitset_for_each (slot, question->required) {
        bitset_add(ret_chosen, slot);
        left--;
    }
    for (int chosen = 1; chosen >= 0; chosen--) {
        for (size_t i = 0; i < count && left > 0; i++) {
            size_t slot = pool->candidates[i].slot;

            if (pool->chosen[i] != chosen || bitset_has(ret_chosen, slot))
                continue;
            bitset_add(ret_chosen, slot);
            left--;
        }
    }
}

static int choose_slots(const struct policy *policy, const struct policy_question *question,
                        struct bitset *ret_chosen)
{
    const struct berth_pool *pool = policy->context;
    size_t count = gather_candidates(pool, question);

    memset(pool->chosen, 0, count * sizeof(*pool->chosen));
    pool->choose(pool->choose_data, pool->candidates, count, question->count, pool->chosen);
    complete_choice(pool, question, count, ret_chosen);
    return 0;
}

const struct policy custom_policy = {
    .name = "own",
    .summary = "the program's own choice",
    .choose = choose_slots,
};
