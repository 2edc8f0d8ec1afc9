/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy/connected_set.h"

#include <stdlib.h>

#include "engine/policy/connected_internal.h"

const uint64_t topology_steps_max = 2000000;

struct topology_scratch *topology_scratch_create(uint32_t max)
{
    struct topology_scratch *scratch = calloc(1, sizeof(*scratch));
    size_t subsets = (size_t)1 << (max < TOPOLOGY_EXACT_MAX ? max : TOPOLOGY_EXACT_MAX);

    if (scratch == NULL)
        return NULL;
    scratch->max = max;
    scratch->sums = calloc(subsets, sizeof(*scratch->sums));
    scratch->totals = calloc(subsets, sizeof(*scratch->totals));
    if (scratch->sums == NULL || scratch->totals == NULL) {
        topology_scratch_destroy(scratch);
        return NULL;
    }
    return scratch;
}

void topology_scratch_destroy(struct topology_scratch *scratch)
{
    if (scratch == NULL)
        return;
    free(scratch->sums);
    free(scratch->totals);
    free(scratch);
}

int64_t topology_reach(const struct topology_scratch *scratch, uint32_t place, uint64_t set)
{
    int64_t sum = 0;

    topology_for_each (other, set)
        sum += scratch->value[place][other];
    return sum;
}

int64_t topology_sum(const struct topology_scratch *scratch, uint64_t set)
{
    int64_t sum = 0;

    topology_for_each (place, set)
        sum += topology_reach(scratch, (uint32_t)place, set & topology_lowest((uint32_t)place));
    return sum;
}

static uint32_t size_of(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

/* Which devices count, and which of them are as good as required: as few of the avoided ones as can
 * be are to be chosen. */
static void leave_out_avoided(const struct topology_question *question, uint64_t *ret_counting,
                              uint64_t *ret_required)
{
    uint64_t plain = (question->candidates & ~question->avoided) | question->required;

    *ret_counting = question->candidates;
    *ret_required = question->required;
    if (size_of(plain) >= question->wanted)
        *ret_counting = plain;
    else
        *ret_required = plain;
}

static void set_up(const struct topology_question *question, struct topology_scratch *scratch)
{
    uint64_t counting;
    uint64_t required;
    uint32_t candidates = size_of(question->candidates);

    leave_out_avoided(question, &counting, &required);
    scratch->count = 0;
    scratch->required = 0;
    scratch->wanted = question->wanted;
    scratch->steps = 0;
    for (uint32_t i = 0; i < candidates; i++) {
        uint8_t device = question->order[i];

        if ((counting & topology_bit(device)) == 0)
            continue;
        if ((required & topology_bit(device)) != 0)
            scratch->required |= topology_bit(scratch->count);
        scratch->unit[scratch->count] = question->units != NULL ? question->units[device] : 0;
        scratch->place[scratch->count++] = device;
    }
    scratch->free = topology_lowest(scratch->count) & ~scratch->required;
    for (uint32_t one = 0; one < scratch->count; one++) {
        const int32_t *row = question->values + (size_t)scratch->place[one] * question->count;

        for (uint32_t other = 0; other < scratch->count; other++)
            scratch->value[one][other] = one == other ? 0 : row[scratch->place[other]];
    }
}

static uint64_t devices_at(const struct topology_scratch *scratch, uint64_t places)
{
    uint64_t devices = 0;

    topology_for_each (place, places)
        devices |= topology_bit(scratch->place[place]);
    return devices;
}

/* Whether there is nothing to choose by, and if so what. */
static bool is_plain(const struct topology_question *question,
                     const struct topology_scratch *scratch, uint64_t *ret_chosen)
{
    uint64_t all = topology_lowest(scratch->count);

    if (scratch->count == scratch->wanted)
        *ret_chosen = all;
    else if (size_of(scratch->required) == scratch->wanted)
        *ret_chosen = scratch->required;
    else if (scratch->wanted == 1 && question->rule == TOPOLOGY_PARTITION)
        *ret_chosen = topology_bit(0);
    else
        return false;
    return true;
}

void topology_choose(const struct topology_question *question, struct topology_scratch *scratch,
                     struct topology_answer *ret_answer)
{
    uint64_t chosen = 0;
    bool proven = true;

    set_up(question, scratch);
    if (!is_plain(question, scratch, &chosen)) {
        if (question->rule == TOPOLOGY_FILL)
            proven = topology_fill(scratch, &chosen);
        else if (topology_part_in_order(scratch, &chosen))
            proven = true;
        else if (scratch->count <= TOPOLOGY_EXACT_MAX)
            topology_part_exactly(scratch, &chosen);
        else
            proven = topology_part_well(scratch, &chosen);
    }
    *ret_answer = (struct topology_answer){
        .chosen = devices_at(scratch, chosen),
        .value = topology_sum(scratch, chosen),
        .proven = proven,
        .steps = scratch->steps,
    };
}
