/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy/connected_set.h"

#include <stdlib.h>

#include "engine/policy/connected_internal.h"

const uint64_t connected_steps_max = 2000000;

struct connected_scratch *connected_set_scratch_create(uint32_t max)
{
    struct connected_scratch *scratch = calloc(1, sizeof(*scratch));
    size_t subsets = (size_t)1 << (max < CONNECTED_EXACT_MAX ? max : CONNECTED_EXACT_MAX);

    if (scratch == NULL)
        return NULL;
    scratch->max = max;
    scratch->sums = calloc(subsets, sizeof(*scratch->sums));
    scratch->totals = calloc(subsets, sizeof(*scratch->totals));
    if (scratch->sums == NULL || scratch->totals == NULL) {
        connected_set_scratch_destroy(scratch);
        return NULL;
    }
    return scratch;
}

void connected_set_scratch_destroy(struct connected_scratch *scratch)
{
    if (scratch == NULL)
        return;
    free(scratch->sums);
    free(scratch->totals);
    free(scratch);
}

int64_t connected_reach(const struct connected_scratch *scratch, uint32_t place, uint64_t set)
{
    int64_t sum = 0;

    connected_for_each (other, set)
        sum += scratch->value[place][other];
    return sum;
}

int64_t connected_sum(const struct connected_scratch *scratch, uint64_t set)
{
    int64_t sum = 0;

    connected_for_each (place, set)
        sum += connected_reach(scratch, (uint32_t)place, set & connected_lowest((uint32_t)place));
    return sum;
}

static uint32_t count_places(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

/* Finds the devices that may be chosen and those that must be, so that the fewest avoided devices
 * are chosen: either none of them is needed, or all others are chosen. */
static void apply_avoided(const struct connected_question *question, uint64_t *ret_allowed,
                          uint64_t *ret_required)
{
    uint64_t plain = (question->candidates & ~question->avoided) | question->required;

    *ret_allowed = question->candidates;
    *ret_required = question->required;
    if (count_places(plain) >= question->wanted)
        *ret_allowed = plain;
    else
        *ret_required = plain;
}

static void set_up_scratch(const struct connected_question *question,
                           struct connected_scratch *scratch)
{
    uint64_t allowed;
    uint64_t required;
    uint32_t candidates = count_places(question->candidates);

    apply_avoided(question, &allowed, &required);
    scratch->count = 0;
    scratch->required = 0;
    scratch->wanted = question->wanted;
    scratch->steps = 0;
    for (uint32_t i = 0; i < candidates; i++) {
        uint8_t device = question->order[i];

        if ((allowed & connected_bit(device)) == 0)
            continue;
        if ((required & connected_bit(device)) != 0)
            scratch->required |= connected_bit(scratch->count);
        scratch->unit[scratch->count] = question->units != NULL ? question->units[device] : 0;
        scratch->place[scratch->count++] = device;
    }
    scratch->free = connected_lowest(scratch->count) & ~scratch->required;
    for (uint32_t one = 0; one < scratch->count; one++) {
        const int32_t *row = question->values + (size_t)scratch->place[one] * question->count;

        for (uint32_t other = 0; other < scratch->count; other++)
            scratch->value[one][other] = one == other ? 0 : row[scratch->place[other]];
    }
}

static uint64_t devices_at(const struct connected_scratch *scratch, uint64_t places)
{
    uint64_t devices = 0;

    connected_for_each (place, places)
        devices |= connected_bit(scratch->place[place]);
    return devices;
}

/* Returns whether there is only one answer, and this answer. */
static bool is_trivial(const struct connected_question *question,
                       const struct connected_scratch *scratch, uint64_t *ret_chosen)
{
    uint64_t all = connected_lowest(scratch->count);

    if (scratch->count == scratch->wanted)
        *ret_chosen = all;
    else if (count_places(scratch->required) == scratch->wanted)
        *ret_chosen = scratch->required;
    else if (scratch->wanted == 1 && question->rule == CONNECTED_PARTITION)
        *ret_chosen = connected_bit(0);
    else
        return false;
    return true;
}

void connected_set_choose(const struct connected_question *question,
                          struct connected_scratch *scratch, struct connected_answer *ret_answer)
{
    uint64_t chosen = 0;
    bool proven = true;

    set_up_scratch(question, scratch);
    if (!is_trivial(question, scratch, &chosen)) {
        if (question->rule == CONNECTED_FILL)
            proven = connected_fill(scratch, &chosen);
        else if (connected_search_in_order(scratch, &chosen))
            proven = true;
        else if (scratch->count <= CONNECTED_EXACT_MAX)
            connected_exact_partition(scratch, &chosen);
        else
            proven = connected_search_partition(scratch, &chosen);
    }
    *ret_answer = (struct connected_answer){
        .chosen = devices_at(scratch, chosen),
        .value = connected_sum(scratch, chosen),
        .proven = proven,
        .steps = scratch->steps,
    };
}
