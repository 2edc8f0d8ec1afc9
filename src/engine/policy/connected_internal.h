/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the choice of connected devices. Only for topology*.c. Devices are known by their
 * place in the order of those that count: 0 comes first among equals.
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
    uint64_t free;                /* places that are neither required nor left out */
    uint8_t place[CONNECTED_MAX]; /* the device there */
    uint8_t unit[CONNECTED_MAX];
    int32_t value[CONNECTED_MAX][CONNECTED_MAX];
    uint64_t steps;

    /* The partition that a search is at, and the best so far. */
    struct connected_partition {
        uint32_t sets;
        uint8_t size[CONNECTED_SETS_MAX];
        uint8_t set[CONNECTED_MAX]; /* by place */
        int64_t total;
    } now, best;
    int64_t to[CONNECTED_SETS_MAX][CONNECTED_MAX]; /* by set, by place: sum of values to the set */
    uint64_t seed;

    /* By subset of the places, of which there are CONNECTED_EXACT_MAX at most; see
     * topology_exact.c. */
    int64_t *sums;
    int64_t *totals;
    int64_t odd_max; /* of the sums of sets that are as large as the one that is not full */
};

static inline uint64_t connected_bit(uint32_t place)
{
    return UINT64_C(1) << place;
}

/* The lowest `count` places. */
static inline uint64_t connected_lowest(uint32_t count)
{
    return count >= 64 ? UINT64_MAX : connected_bit(count) - 1;
}

/* Runs `place`, a number declared here, over the members of a mask, which is evaluated once. */
#define connected_for_each(place, mask)                                                \
    for (uint64_t place##_left = (mask), place = 0;                                    \
         place##_left != 0 && (place = (uint64_t)__builtin_ctzll(place##_left), true); \
         place##_left &= place##_left - 1)

/* Sum of values between a place and the members of a set. */
int64_t connected_reach(const struct connected_scratch *scratch, uint32_t place, uint64_t set);

/* Sum of values of all pairs within a set. */
int64_t connected_sum(const struct connected_scratch *scratch, uint64_t set);

/* Whether the first set comes before the other: it has the lowest place that only one has. */
static inline bool connected_is_earlier(uint64_t one, uint64_t other)
{
    uint64_t differ = one ^ other;

    return (one & differ & -differ) != 0;
}

/* Each of these answers by places, with steps counted in the scratch. */

/* Tries what the rule would look at first: the places in order. Returns whether nothing is better;
 * else there is no answer yet. */
bool connected_search_in_order(struct connected_scratch *scratch, uint64_t *ret_chosen);

/* The total of some good partition, soon found. */
int64_t connected_search_good_total(struct connected_scratch *scratch);

/* The rule to the letter; only for CONNECTED_EXACT_MAX places. */
void connected_exact_partition(struct connected_scratch *scratch, uint64_t *ret_chosen);

/* These return whether it is proven. */
bool connected_search_partition(struct connected_scratch *scratch, uint64_t *ret_chosen);
bool connected_fill(struct connected_scratch *scratch, uint64_t *ret_chosen);

#endif
