/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of numbers that finds its lowest member quickly: a bitset, above it a bitset of the words
 * that are not 0, and so on up to one word. Adding, removing and finding the lowest member take
 * O(log64 size). Only one thread may use a set at a time.
 */
#ifndef BASE_LOWEST_SET_H
#define BASE_LOWEST_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOWEST_SET_LEVELS = 4 }; /* 16 million members */

struct lowest_set {
    uint64_t *levels[LOWEST_SET_LEVELS]; /* the members first; one word at the top */
    unsigned depth;
    size_t words[LOWEST_SET_LEVELS]; /* number of words of each level */
};

/* Makes an empty set of numbers below `size`, which is at most 64^LOWEST_SET_LEVELS (assert).
 * Returns 0 or BERTH_ERROR_MEMORY. */
int lowest_set_init(struct lowest_set *set, size_t size);
void lowest_set_finish(struct lowest_set *set);

static inline bool lowest_set_has(const struct lowest_set *set, size_t number)
{
    return (set->levels[0][number / 64] >> (number % 64)) & 1;
}

static inline bool lowest_set_is_empty(const struct lowest_set *set)
{
    return set->levels[set->depth - 1][0] == 0;
}

/* Update the levels above the members. For lowest_set_add and lowest_set_remove only. */
void lowest_set_mark(struct lowest_set *set, size_t word);
void lowest_set_unmark(struct lowest_set *set, size_t word);

/* Adds a number that is not in the set. */
static inline void lowest_set_add(struct lowest_set *set, size_t number)
{
    uint64_t *word = &set->levels[0][number / 64];
    uint64_t before = *word;

    *word = before | UINT64_C(1) << (number % 64);
    if (before == 0 && set->depth > 1)
        lowest_set_mark(set, number / 64);
}

/* Removes a number that is in the set. */
static inline void lowest_set_remove(struct lowest_set *set, size_t number)
{
    uint64_t *word = &set->levels[0][number / 64];

    *word &= ~(UINT64_C(1) << (number % 64));
    if (*word == 0 && set->depth > 1)
        lowest_set_unmark(set, number / 64);
}

/* Returns the lowest number in the set, which must not be empty. */
static inline size_t lowest_set_first(const struct lowest_set *set)
{
    size_t number = 0;

    if (set->depth == 1)
        return (size_t)__builtin_ctzll(set->levels[0][0]);
    for (unsigned level = set->depth; level-- > 0;)
        number = number * 64 + (size_t)__builtin_ctzll(set->levels[level][number]);
    return number;
}

/* Returns the lowest number in the set at or above `from`, or SIZE_MAX when there is none. */
size_t lowest_set_next(const struct lowest_set *set, size_t from);

#endif
