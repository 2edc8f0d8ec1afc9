/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the best partition of a few devices. It takes sets off one by one, each with the lowest
 * place left, and computes the best total of every rest once. The value of a set is twice its sum
 * less the best sums that its places could have, so full sets add at most 0. This prunes sets whose
 * value is already too low.
 */
#include "engine/policy/connected_internal.h"

#define UNKNOWN    INT64_MIN
#define IMPOSSIBLE (INT64_MIN / 2)

static uint32_t count_places(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

/* An iterator over the subsets of `mask` of one size, in rising order. */
struct subsets {
    uint32_t mask;
    uint32_t now;
    uint32_t lowest[CONNECTED_EXACT_MAX + 1]; /* by count: the lowest bits of the mask */
};

static void subsets_start(struct subsets *subsets, uint32_t mask, uint32_t size)
{
    uint32_t count = 0;

    *subsets = (struct subsets){.mask = mask};
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        subsets->lowest[count + 1] = subsets->lowest[count] | (left & -left);
        count++;
    }
    subsets->now = subsets->lowest[size];
}

/* Moves to the next subset: adds the lowest bit with a carry through the mask's bits only, and
 * moves the cleared bits to the bottom. Returns false after the last subset. */
static bool subsets_next(struct subsets *subsets)
{
    uint32_t raised =
        ((subsets->now | ~subsets->mask) + (subsets->now & -subsets->now)) & subsets->mask;
    uint32_t cleared = subsets->now & ~raised;

    if ((raised & ~subsets->now) == 0)
        return false;
    subsets->now = raised | subsets->lowest[count_places(cleared) - 1];
    return true;
}

/* Returns the size of the set that is not full; 0 if all are full. */
static uint32_t odd_size(const struct connected_scratch *scratch)
{
    return scratch->count % scratch->wanted;
}

static uint32_t required_of(const struct connected_scratch *scratch)
{
    return (uint32_t)scratch->required;
}

/* Returns whether the set may be in a partition: all required places must be in one full set. */
static bool is_allowed(const struct connected_scratch *scratch, uint32_t set)
{
    uint32_t required = required_of(scratch);

    return (set & required) == 0 ||
           ((set & required) == required && count_places(set) == scratch->wanted);
}

/* Returns the size of the set that is not full, if it is not placed yet; else 0. */
static uint32_t odd_size_left(const struct connected_scratch *scratch, uint32_t rest)
{
    return count_places(rest) % scratch->wanted != 0 ? odd_size(scratch) : 0;
}

/* The choice of a set of one size with the lowest place left. */
struct set_choice {
    uint32_t rest;
    struct subsets others; /* the set without the lowest place */
    int64_t to_come;       /* upper bound of the rest's total */
    bool leaves_one;       /* at most one set remains after it */
};

/* Starts with the first set. Returns whether there is one. */
static bool set_choice_start(const struct connected_scratch *scratch, uint32_t rest, uint32_t size,
                             struct set_choice *choice)
{
    uint32_t left = count_places(rest) - size;

    if (size == 0 || count_places(rest) < size)
        return false;
    choice->rest = rest;
    choice->to_come = left % scratch->wanted != 0 ? scratch->odd_max : 0;
    choice->leaves_one = left <= scratch->wanted;
    subsets_start(&choice->others, rest & (rest - 1), size - 1);
    return true;
}

static uint32_t chosen_set(const struct set_choice *choice)
{
    return choice->others.now | (choice->rest & -choice->rest);
}

static int64_t find_best_total(struct connected_scratch *scratch, uint32_t rest);

/* Returns the best total with the current set, or IMPOSSIBLE if it is certainly below `min`. */
static int64_t total_of(struct connected_scratch *scratch, const struct set_choice *choice,
                        int64_t min)
{
    uint32_t set = chosen_set(choice);
    uint32_t rest = choice->rest & ~set;

    scratch->steps++;
    if (scratch->sums[set] + choice->to_come < min || !is_allowed(scratch, set))
        return IMPOSSIBLE;
    if (choice->leaves_one)
        return is_allowed(scratch, rest) ? scratch->sums[set] + scratch->sums[rest] : IMPOSSIBLE;
    return scratch->sums[set] + find_best_total(scratch, rest);
}

/* Returns the best total with a first set of this size, or `best` if that is higher. */
static int64_t find_best_of_size(struct connected_scratch *scratch, uint32_t rest, uint32_t size,
                                 int64_t best)
{
    struct set_choice choice;

    if (!set_choice_start(scratch, rest, size, &choice))
        return best;
    do {
        int64_t total = total_of(scratch, &choice, best + 1);

        best = total > best ? total : best;
    } while (subsets_next(&choice.others));
    return best;
}

/* Returns the best total of a rest with more than one set. */
static int64_t find_best_total(struct connected_scratch *scratch, uint32_t rest)
{
    int64_t best = IMPOSSIBLE;

    if (scratch->totals[rest] != UNKNOWN)
        return scratch->totals[rest];
    best = find_best_of_size(scratch, rest, scratch->wanted, best);
    best = find_best_of_size(scratch, rest, odd_size_left(scratch, rest), best);
    scratch->totals[rest] = best;
    return best;
}

/* Finds the earliest first set of a best partition of the rest. */
static void find_earliest(struct connected_scratch *scratch, uint32_t rest, uint32_t size,
                          uint32_t *set)
{
    int64_t total = scratch->totals[rest];
    struct set_choice choice;

    if (!set_choice_start(scratch, rest, size, &choice))
        return;
    do {
        uint32_t found = chosen_set(&choice);

        if ((*set == 0 || connected_is_earlier(found, *set)) &&
            total_of(scratch, &choice, total) == total)
            *set = found;
    } while (subsets_next(&choice.others));
}

/* Returns the greatest sum that a place can have in a set of this size. */
static int64_t reach_max(const struct connected_scratch *scratch, uint32_t place, uint32_t size)
{
    uint32_t left = (uint32_t)connected_lowest(scratch->count) & ~(UINT32_C(1) << place);
    int64_t sum = 0;

    for (uint32_t i = 1; i < size; i++) {
        uint32_t best = (uint32_t)__builtin_ctz(left);

        for (uint32_t rest = left; rest != 0; rest &= rest - 1) {
            uint32_t other = (uint32_t)__builtin_ctz(rest);

            if (scratch->value[place][other] > scratch->value[place][best])
                best = other;
        }
        sum += scratch->value[place][best];
        left &= ~(UINT32_C(1) << best);
    }
    return sum;
}

/* Fills in the value of every subset: twice its sum minus the best of each of its places. Returns
 * the sum of all bests. */
static int64_t sum_subsets(struct connected_scratch *scratch)
{
    uint32_t subsets = UINT32_C(1) << scratch->count;
    int64_t max[CONNECTED_EXACT_MAX] = {0};
    int64_t twice = 0;

    for (uint32_t place = 0; place < scratch->count; place++) {
        int64_t full = reach_max(scratch, place, scratch->wanted);
        int64_t odd = reach_max(scratch, place, odd_size(scratch));

        max[place] = odd_size(scratch) > 0 && odd > full ? odd : full;
        twice += max[place];
    }
    scratch->sums[0] = 0;
    scratch->odd_max = IMPOSSIBLE;
    for (uint32_t set = 1; set < subsets; set++) {
        uint32_t rest = set & (set - 1);
        uint32_t place = (uint32_t)__builtin_ctz(set);

        scratch->sums[set] =
            scratch->sums[rest] + 2 * connected_reach(scratch, place, rest) - max[place];
        scratch->totals[set] = UNKNOWN;
        if (count_places(set) == odd_size(scratch) && scratch->sums[set] > scratch->odd_max)
            scratch->odd_max = scratch->sums[set];
    }
    scratch->steps += subsets;
    return twice;
}

void connected_exact_partition(struct connected_scratch *scratch, uint64_t *ret_chosen)
{
    uint32_t rest = (uint32_t)connected_lowest(scratch->count);
    uint32_t required = required_of(scratch);
    uint32_t chosen = 0;
    /* Consider only partitions that are at least as good as one that is found quickly. */
    int64_t found = 2 * connected_search_good_total(scratch) - sum_subsets(scratch) - 1;

    scratch->totals[rest] = find_best_of_size(
        scratch, rest, odd_size(scratch), find_best_of_size(scratch, rest, scratch->wanted, found));
    while (rest != 0) {
        uint32_t set = count_places(rest) <= scratch->wanted ? rest : 0;

        if (set == 0) {
            find_earliest(scratch, rest, scratch->wanted, &set);
            find_earliest(scratch, rest, odd_size_left(scratch, rest), &set);
        }
        if ((set & required) == required && count_places(set) == scratch->wanted &&
            (chosen == 0 || connected_sum(scratch, set) > connected_sum(scratch, chosen)))
            chosen = set;
        rest &= ~set;
    }
    *ret_chosen = chosen;
}
