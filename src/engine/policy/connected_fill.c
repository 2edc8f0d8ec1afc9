/* SPDX-License-Identifier: Apache-2.0
 *
 * AMD's rule, for devices that are parts of GPUs (units): units are used up one after the other,
 * those with the fewest candidates first. Choices with fewer units are tried first, then those with
 * earlier units. A choice that cannot be better than the best so far is skipped.
 */
#include "engine/policy/connected_internal.h"

/* The search through all choices stops after SEARCH_STEPS_MAX steps. The search from single places,
 * which follows it then, stops after ALL_STEPS_MAX steps in all. */
#define SEARCH_STEPS_MAX 1000000
#define ALL_STEPS_MAX    1500000

struct unit {
    uint64_t places;
    uint32_t size;
};

struct filling {
    struct connected_scratch *scratch;
    struct unit units[CONNECTED_MAX];        /* the smallest first */
    uint32_t largest[CONNECTED_MAX + 1];     /* by count: places of that many largest units */
    uint64_t places_from[CONNECTED_MAX + 1]; /* by unit: places of this and all later units */
    uint32_t count;
    uint32_t level; /* units to use */
    int64_t pair_max;
    bool found;
    bool given_up;
    int64_t best;
    uint64_t chosen;
};

static uint32_t count_places(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

static bool is_unit_before(const struct unit *one, const struct unit *other)
{
    if (one->size != other->size)
        return one->size < other->size;
    return connected_is_earlier(one->places, other->places);
}

static void sort_units(struct filling *filling)
{
    for (uint32_t i = 1; i < filling->count; i++) {
        struct unit unit = filling->units[i];
        uint32_t place = i;

        for (; place > 0 && is_unit_before(&unit, &filling->units[place - 1]); place--)
            filling->units[place] = filling->units[place - 1];
        filling->units[place] = unit;
    }
}

static void gather_units(struct filling *filling)
{
    const struct connected_scratch *scratch = filling->scratch;
    uint64_t by_unit[CONNECTED_MAX] = {0};

    connected_for_each (place, scratch->free)
        by_unit[scratch->unit[place]] |= connected_bit((uint32_t)place);
    for (uint32_t unit = 0; unit < CONNECTED_MAX; unit++) {
        if (by_unit[unit] != 0)
            filling->units[filling->count++] =
                (struct unit){.places = by_unit[unit], .size = count_places(by_unit[unit])};
    }
    sort_units(filling);
    for (uint32_t i = filling->count; i-- > 0;) {
        filling->largest[filling->count - i] =
            filling->largest[filling->count - i - 1] + filling->units[i].size;
        filling->places_from[i] = filling->places_from[i + 1] | filling->units[i].places;
    }
}

static int64_t find_greatest_value(const struct connected_scratch *scratch)
{
    int64_t max = scratch->value[0][1];

    for (uint32_t one = 0; one < scratch->count; one++) {
        for (uint32_t other = 0; other < one; other++)
            max = scratch->value[one][other] > max ? scratch->value[one][other] : max;
    }
    return max;
}

static uint64_t take_first_places(uint64_t places, uint32_t count)
{
    uint64_t taken = 0;

    for (; count > 0; count--) {
        taken |= places & -places;
        places &= places - 1;
    }
    return taken;
}

/* Returns whether `missing` places from this unit on may give a better sum than the best. */
static bool may_improve(struct filling *filling, uint32_t from, uint32_t depth, int64_t sum,
                        uint32_t missing)
{
    const int64_t *reach = filling->scratch->to[depth];
    int64_t max = INT64_MIN;

    if (!filling->found)
        return true;
    connected_for_each (place, filling->places_from[from])
        max = reach[place] > max ? reach[place] : max;
    filling->scratch->steps += filling->scratch->count / 4;
    return sum + missing * max + (int64_t)missing * (missing - 1) / 2 * filling->pair_max >
           filling->best;
}

static void take_unit(struct filling *filling, uint64_t places, uint32_t depth)
{
    struct connected_scratch *scratch = filling->scratch;

    for (uint32_t place = 0; place < scratch->count; place++)
        scratch->to[depth + 1][place] = scratch->to[depth][place];
    connected_for_each (taken, places) {
        for (uint32_t place = 0; place < scratch->count; place++)
            scratch->to[depth + 1][place] += scratch->value[taken][place];
    }
    scratch->steps += (1 + (uint64_t)count_places(places)) * scratch->count / 4;
}

static int64_t sum_with(const struct filling *filling, uint64_t places, uint32_t depth)
{
    int64_t sum = connected_sum(filling->scratch, places);

    connected_for_each (place, places)
        sum += filling->scratch->to[depth][place];
    filling->scratch->steps += (uint64_t)count_places(places) * count_places(places) / 4 + 1;
    return sum;
}

/* Tries all choices of `level - depth` units, from this unit on, for the missing places. */
static void search_units(struct filling *filling, uint32_t from, uint32_t depth, uint64_t chosen,
                         int64_t sum, uint32_t missing)
{
    uint32_t more = filling->level - depth;

    if (!may_improve(filling, from, depth, sum, missing))
        return;
    for (uint32_t i = from; i + more <= filling->count; i++) {
        const struct unit *unit = &filling->units[i];
        bool last = unit->size >= missing;
        uint64_t taken = last ? take_first_places(unit->places, missing) : unit->places;
        int64_t with;

        filling->given_up |= filling->scratch->steps >= SEARCH_STEPS_MAX;
        if (filling->given_up || filling->largest[more] < missing)
            return;
        if (last != (more == 1))
            continue;
        with = sum + sum_with(filling, taken, depth);
        if (last && (!filling->found || with > filling->best)) {
            filling->found = true;
            filling->best = with;
            filling->chosen = chosen | taken;
        } else if (!last) {
            take_unit(filling, taken, depth);
            search_units(filling, i + 1, depth + 1, chosen | taken, with, missing - unit->size);
        }
    }
}

/* A set that changes by one place at a time, and the sum of every place's values to it. */
struct growing {
    uint64_t chosen;
    int64_t reach[CONNECTED_MAX];
};

static void toggle_place(struct connected_scratch *scratch, struct growing *set, uint32_t place)
{
    bool is_in = (set->chosen & connected_bit(place)) != 0;

    set->chosen ^= connected_bit(place);
    for (uint32_t other = 0; other < scratch->count; other++)
        set->reach[other] += is_in ? -scratch->value[place][other] : scratch->value[place][other];
    scratch->steps += scratch->count;
}

/* Builds a set from one place by adding the best place again and again. */
static void grow_set(struct connected_scratch *scratch, uint32_t seed, struct growing *set)
{
    *set = (struct growing){0};
    connected_for_each (place, scratch->required)
        toggle_place(scratch, set, (uint32_t)place);
    toggle_place(scratch, set, seed);
    while (count_places(set->chosen) < scratch->wanted) {
        uint64_t left = scratch->free & ~set->chosen;
        uint32_t best = (uint32_t)__builtin_ctzll(left);

        connected_for_each (place, left)
            best = set->reach[place] > set->reach[best] ? (uint32_t)place : best;
        toggle_place(scratch, set, best);
    }
}

/* Makes the best exchange of two places. Returns whether it increases the sum. */
static bool exchange_places(struct connected_scratch *scratch, struct growing *set)
{
    uint64_t outside = scratch->free & ~set->chosen;
    int64_t gain = 0;
    uint32_t out = 0;
    uint32_t in = 0;

    connected_for_each (one, set->chosen & ~scratch->required) {
        connected_for_each (other, outside) {
            int64_t change = set->reach[other] - set->reach[one] - scratch->value[one][other];

            if (change > gain) {
                gain = change;
                out = (uint32_t)one;
                in = (uint32_t)other;
            }
        }
    }
    scratch->steps += (uint64_t)count_places(set->chosen) * count_places(outside);
    if (gain == 0)
        return false;
    toggle_place(scratch, set, out);
    toggle_place(scratch, set, in);
    return true;
}

/* Searches from single places, because the search through all choices was stopped. */
static void search_from_places(struct filling *filling)
{
    struct connected_scratch *scratch = filling->scratch;

    connected_for_each (place, scratch->free) {
        struct growing set;
        int64_t sum;

        grow_set(scratch, (uint32_t)place, &set);
        while (scratch->steps < ALL_STEPS_MAX && exchange_places(scratch, &set)) {
        }
        sum = connected_sum(scratch, set.chosen);
        if (!filling->found || sum > filling->best) {
            filling->found = true;
            filling->best = sum;
            filling->chosen = set.chosen;
        }
        if (scratch->steps >= ALL_STEPS_MAX)
            return;
    }
}

bool connected_fill(struct connected_scratch *scratch, uint64_t *ret_chosen)
{
    struct filling filling = {.scratch = scratch, .pair_max = find_greatest_value(scratch)};
    uint32_t missing = scratch->wanted - count_places(scratch->required);

    gather_units(&filling);
    for (uint32_t place = 0; place < scratch->count; place++)
        scratch->to[0][place] = connected_reach(scratch, place, scratch->required);
    for (filling.level = 1; filling.level <= filling.count; filling.level++)
        search_units(&filling, 0, 0, scratch->required, connected_sum(scratch, scratch->required),
                     missing);
    if (filling.given_up)
        search_from_places(&filling);
    *ret_chosen = filling.chosen;
    return !filling.given_up;
}
