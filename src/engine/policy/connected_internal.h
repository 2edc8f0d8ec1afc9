/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of connected_*.c. A place is a device's number in the order of the devices that may be
 * chosen; among equals, lower places come first.
 */
#ifndef ENGINE_POLICY_CONNECTED_INTERNAL_H
#define ENGINE_POLICY_CONNECTED_INTERNAL_H

#include "engine/policy/connected_set.h"

enum { CONNECTED_SETS_MAX = CONNECTED_MAX };

struct connected_scratch {
    uint32_t max;
    /* The question, by place. */
    uint32_t count;
    uint32_t wanted;
    uint64_t required;
    uint64_t free;                /* places that are not required */
    uint8_t place[CONNECTED_MAX]; /* its device */
    uint8_t unit[CONNECTED_MAX];
    int32_t value[CONNECTED_MAX][CONNECTED_MAX];
    uint64_t steps;

    /* The current partition of a search, and the best so far. */
    struct connected_partition {
        uint32_t sets;
        uint8_t size[CONNECTED_SETS_MAX];
        uint8_t set[CONNECTED_MAX]; /* by place: its set */
        int64_t total;
    } now, best;
    int64_t to[CONNECTED_SETS_MAX]
              [CONNECTED_MAX]; /* by set and place: sum of the place's values to the set */
    uint64_t seed;

    /* By subset of the places, for at most CONNECTED_EXACT_MAX places; see connected_exact.c. */
    int64_t *sums;
    int64_t *totals;
    int64_t odd_max; /* the greatest sum of a set of the odd size */
};

static inline uint64_t connected_bit(uint32_t place)
{
    return UINT64_C(1) << place;
}

/* Returns the lowest `count` places. */
static inline uint64_t connected_lowest(uint32_t count)
{
    return count >= 64 ? UINT64_MAX : connected_bit(count) - 1;
}

/* Loops over the members of a mask, which is evaluated once. Declares `place`. */
#define connected_for_each(place, mask)                                                \
    for (uint64_t place##_left = (mask), place = 0;                                    \
         place##_left != 0 && (place = (uint64_t)__builtin_ctzll(place##_left), true); \
         place##_left &= place##_left - 1)

/* Returns the sum of a place's values to the members of a set. */
int64_t connected_reach(const struct connected_scratch *scratch, uint32_t place, uint64_t set);

/* Returns the sum of all pairs within a set. */
int64_t connected_sum(const struct connected_scratch *scratch, uint64_t set);

/* Returns whether set `one` comes first: it has the lowest place that is in only one of them. */
static inline bool connected_is_earlier(uint64_t one, uint64_t other)
{
    uint64_t differ = one ^ other;

    return (one & differ & -differ) != 0;
}

/* The algorithms. Their answers are masks of places, and they count their steps in the scratch. */

/* Tries the first partition by the rule: the places in order. Returns whether no other is better.
 * If one may be, sets no answer. */
bool connected_search_in_order(struct connected_scratch *scratch, uint64_t *ret_chosen);

/* Returns the total of a good partition that is found quickly. */
int64_t connected_search_good_total(struct connected_scratch *scratch);

/* Finds the best partition; for at most CONNECTED_EXACT_MAX places. */
void connected_exact_partition(struct connected_scratch *scratch, uint64_t *ret_chosen);

/* Find the answer by a good partition of many places, and by AMD's rule. Return whether it is
 * proven best. */
bool connected_search_partition(struct connected_scratch *scratch, uint64_t *ret_chosen);
bool connected_fill(struct connected_scratch *scratch, uint64_t *ret_chosen);

#endif
