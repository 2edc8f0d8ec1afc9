/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds a good partition of many devices. Pairs of places are exchanged between sets while that
 * increases the total. Then some pairs are exchanged at random (with a fixed seed), and the search
 * starts again from there. A total that reaches an upper bound is the best.
 */
#include <string.h>

#include "engine/policy/connected_internal.h"

/* The search stops after this many steps. */
#define STEPS_MAX 1500000

/* The number of steps that an exchange counts as. */
#define EXCHANGE_STEPS 32

static void refresh_reach(struct connected_scratch *scratch)
{
    struct connected_partition *now = &scratch->now;

    memset(scratch->to, 0, sizeof(scratch->to));
    now->total = 0;
    for (uint32_t place = 0; place < scratch->count; place++) {
        for (uint32_t other = 0; other < scratch->count; other++)
            scratch->to[now->set[place]][other] += scratch->value[place][other];
    }
    for (uint32_t place = 0; place < scratch->count; place++)
        now->total += scratch->to[now->set[place]][place];
    now->total /= 2;
    scratch->steps += (uint64_t)scratch->count * scratch->count;
}

/* Sets the sizes of the sets. The last set may be smaller than the others. */
static void start_sets(struct connected_scratch *scratch)
{
    struct connected_partition *now = &scratch->now;
    uint32_t odd = scratch->count % scratch->wanted;

    now->sets = scratch->count / scratch->wanted;
    memset(now->size, (int)scratch->wanted, now->sets);
    if (odd > 0)
        now->size[now->sets++] = (uint8_t)odd;
}

/* Returns the place to add to a set: the best by value, or the first. */
static uint32_t find_addition(const struct connected_scratch *scratch, uint64_t left, uint32_t set,
                              bool by_value)
{
    uint32_t best = (uint32_t)__builtin_ctzll(left);

    if (!by_value)
        return best;
    connected_for_each (place, left)
        if (scratch->to[set][place] > scratch->to[set][best])
            best = (uint32_t)place;
    return best;
}

/* Fills one set after the other, by value or in order. */
static void fill_sets(struct connected_scratch *scratch, bool by_value)
{
    uint64_t left = connected_lowest(scratch->count);
    uint64_t first = scratch->required;

    start_sets(scratch);
    memset(scratch->to, 0, sizeof(scratch->to));
    for (uint32_t set = 0; set < scratch->now.sets; set++) {
        for (uint32_t i = 0; i < scratch->now.size[set]; i++) {
            uint64_t among = first != 0 ? first : left;
            uint32_t place = find_addition(scratch, among, set, by_value);

            scratch->now.set[place] = (uint8_t)set;
            left &= ~connected_bit(place);
            first &= ~connected_bit(place);
            for (uint32_t other = 0; other < scratch->count; other++)
                scratch->to[set][other] += scratch->value[place][other];
            scratch->steps += scratch->count;
        }
    }
    refresh_reach(scratch);
}

static void exchange_places(struct connected_scratch *scratch, uint32_t one, uint32_t other)
{
    uint8_t *set = scratch->now.set;
    int64_t *mine = scratch->to[set[one]];
    int64_t *theirs = scratch->to[set[other]];
    uint8_t kept = set[one];

    for (uint32_t place = 0; place < scratch->count; place++) {
        int64_t change = scratch->value[other][place] - scratch->value[one][place];

        mine[place] += change;
        theirs[place] -= change;
    }
    set[one] = set[other];
    set[other] = kept;
    scratch->steps += EXCHANGE_STEPS;
}

static int64_t gain_of(const struct connected_scratch *scratch, uint32_t one, uint32_t other)
{
    const int64_t *mine = scratch->to[scratch->now.set[one]];
    const int64_t *theirs = scratch->to[scratch->now.set[other]];

    return theirs[one] + mine[other] - mine[one] - theirs[other] -
           2 * (int64_t)scratch->value[one][other];
}

static bool may_move(const struct connected_scratch *scratch, uint32_t place)
{
    return (scratch->required & connected_bit(place)) == 0;
}

/* Exchanges one place with later ones while that increases the total. Returns whether it did. */
static bool improve_place(struct connected_scratch *scratch, uint32_t one)
{
    bool improved = false;

    for (uint32_t other = one + 1; other < scratch->count; other++) {
        int64_t gain;

        if (scratch->now.set[one] == scratch->now.set[other] || !may_move(scratch, other))
            continue;
        gain = gain_of(scratch, one, other);
        if (gain <= 0)
            continue;
        exchange_places(scratch, one, other);
        scratch->now.total += gain;
        improved = true;
    }
    scratch->steps += scratch->count;
    return improved;
}

static void improve_partition(struct connected_scratch *scratch)
{
    bool improved = true;

    while (improved && scratch->steps < STEPS_MAX) {
        improved = false;
        for (uint32_t place = 0; place < scratch->count; place++)
            improved |= may_move(scratch, place) && improve_place(scratch, place);
    }
}

static uint32_t draw_number(struct connected_scratch *scratch, uint32_t below)
{
    scratch->seed ^= scratch->seed << 13;
    scratch->seed ^= scratch->seed >> 7;
    scratch->seed ^= scratch->seed << 17;
    return (uint32_t)((scratch->seed >> 33) % below);
}

/* Continues from the best partition after some random exchanges. */
static void shake_partition(struct connected_scratch *scratch)
{
    uint32_t times = 2 + draw_number(scratch, 1 + scratch->count / 4);

    scratch->now = scratch->best;
    refresh_reach(scratch);
    for (uint32_t i = 0; i < times; i++) {
        uint32_t one = draw_number(scratch, scratch->count);
        uint32_t other = draw_number(scratch, scratch->count);

        if (scratch->now.set[one] == scratch->now.set[other] || !may_move(scratch, one) ||
            !may_move(scratch, other))
            continue;
        scratch->now.total += gain_of(scratch, one, other);
        exchange_places(scratch, one, other);
    }
}

static void sort_down(int64_t *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        int64_t value = values[i];
        uint32_t place = i;

        for (; place > 0 && values[place - 1] < value; place--)
            values[place] = values[place - 1];
        values[place] = value;
    }
}

/* Returns an upper bound of the total: every place has its best neighbours, and the places that
 * lose the least are in the set that is not full. */
static int64_t find_total_max(struct connected_scratch *scratch)
{
    uint32_t count = scratch->count;
    uint32_t odd = count % scratch->wanted;
    int64_t values[CONNECTED_MAX] = {0};
    int64_t losses[CONNECTED_MAX]; /* negative */
    int64_t twice = 0;

    for (uint32_t place = 0; place < count; place++) {
        uint32_t others = 0;

        for (uint32_t other = 0; other < count; other++) {
            if (other != place)
                values[others++] = scratch->value[place][other];
        }
        sort_down(values, others);
        losses[place] = 0;
        for (uint32_t i = 0; i + 1 < scratch->wanted; i++) {
            twice += values[i];
            losses[place] -= i + 1 >= odd ? values[i] : 0;
        }
    }
    sort_down(losses, count);
    for (uint32_t i = 0; i < odd; i++)
        twice += losses[i];
    scratch->steps += (uint64_t)count * count * 8;
    return twice >= 0 ? twice / 2 : -((1 - twice) / 2);
}

static uint64_t members_of(const struct connected_partition *partition, uint32_t set,
                           uint32_t count)
{
    uint64_t members = 0;

    for (uint32_t place = 0; place < count; place++) {
        if (partition->set[place] == set)
            members |= connected_bit(place);
    }
    return members;
}

static bool are_twins(const struct connected_scratch *scratch, uint64_t one, uint64_t other)
{
    for (uint32_t place = 0; place < scratch->count; place++) {
        if (place != one && place != other &&
            scratch->value[one][place] != scratch->value[other][place])
            return false;
    }
    return true;
}

/* Replaces chosen places by earlier ones that have the same values to all others. */
static uint64_t prefer_early_twins(const struct connected_scratch *scratch, uint64_t chosen)
{
    uint64_t outside = connected_lowest(scratch->count) & ~chosen;

    connected_for_each (place, outside) {
        uint64_t later = chosen & ~scratch->required & ~connected_lowest((uint32_t)place);
        uint64_t last = UINT64_MAX;

        connected_for_each (twin, later)
            last = are_twins(scratch, place, twin) ? twin : last;
        if (last != UINT64_MAX)
            chosen ^= connected_bit((uint32_t)last) | connected_bit((uint32_t)place);
    }
    return chosen;
}

/* Returns the full set with the required places and the greatest sum. */
static uint64_t find_best_set(const struct connected_scratch *scratch)
{
    const struct connected_partition *best = &scratch->best;
    uint64_t chosen = 0;

    for (uint32_t set = 0; set < best->sets; set++) {
        uint64_t members = members_of(best, set, scratch->count);
        int64_t more;

        if (best->size[set] != scratch->wanted ||
            (members & scratch->required) != scratch->required)
            continue;
        more = chosen == 0 ? 1 : connected_sum(scratch, members) - connected_sum(scratch, chosen);
        if (more > 0 || (more == 0 && connected_is_earlier(members, chosen)))
            chosen = members;
    }
    return chosen;
}

bool connected_search_in_order(struct connected_scratch *scratch, uint64_t *ret_chosen)
{
    if (scratch->required != 0)
        return false;
    fill_sets(scratch, false);
    if (scratch->now.total < find_total_max(scratch))
        return false;
    scratch->best = scratch->now;
    *ret_chosen = find_best_set(scratch);
    return true;
}

int64_t connected_search_good_total(struct connected_scratch *scratch)
{
    fill_sets(scratch, true);
    improve_partition(scratch);
    return scratch->now.total;
}

bool connected_search_partition(struct connected_scratch *scratch, uint64_t *ret_chosen)
{
    int64_t max = find_total_max(scratch);

    scratch->seed = UINT64_C(0x9e3779b97f4a7c15);
    for (int by_value = 0; by_value < 2; by_value++) {
        fill_sets(scratch, by_value != 0);
        improve_partition(scratch);
        if (by_value == 0 || scratch->now.total > scratch->best.total)
            scratch->best = scratch->now;
    }
    while (scratch->best.total < max && scratch->steps < STEPS_MAX) {
        shake_partition(scratch);
        improve_partition(scratch);
        if (scratch->now.total > scratch->best.total)
            scratch->best = scratch->now;
    }
    *ret_chosen = prefer_early_twins(scratch, find_best_set(scratch));
    return scratch->best.total >= max;
}
