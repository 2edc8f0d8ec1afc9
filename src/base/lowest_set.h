/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of small numbers whose lowest member is found at once, however large the set may be: a
 * bitset with a bitset over its words, and so on up to one word. Adding, removing and finding the
 * lowest take O(log64 size). Not for use by two threads at once.
 */
#ifndef BASE_LOWEST_SET_H
#define BASE_LOWEST_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOWEST_SET_LEVELS = 4 }; /* 16 million members */

struct lowest_set {
    uint64_t *levels[LOWEST_SET_LEVELS]; /* the members first */
    unsigned depth;
    size_t count;
};

/* An empty set of numbers below `size`, at most 64^LOWEST_SET_LEVELS (assert). Returns 0 or
 * BERTH_ERROR_MEMORY. */
int lowest_set_init(struct lowest_set *set, size_t size);
void lowest_set_finish(struct lowest_set *set);

static inline bool lowest_set_has(const struct lowest_set *set, size_t number)
{
    return (set->levels[0][number / 64] >> (number % 64)) & 1;
}

/* Adds a number that is not in the set. */
static inline void lowest_set_add(struct lowest_set *set, size_t number)
{
    set->count++;
    for (unsigned level = 0; level < set->depth; level++) {
        uint64_t before = set->levels[level][number / 64];

        set->levels[level][number / 64] = before | UINT64_C(1) << (number % 64);
        if (before != 0)
            return;
        number /= 64;
    }
}

/* Removes a number that is in the set. */
static inline void lowest_set_remove(struct lowest_set *set, size_t number)
{
    set->count--;
    for (unsigned level = 0; level < set->depth; level++) {
        uint64_t after = set->levels[level][number / 64] & ~(UINT64_C(1) << (number % 64));

        set->levels[level][number / 64] = after;
        if (after != 0)
            return;
        number /= 64;
    }
}

/* The lowest number in the set, which must not be empty. */
static inline size_t lowest_set_first(const struct lowest_set *set)
{
    size_t number = 0;

    for (unsigned level = set->depth; level-- > 0;)
        number = number * 64 + (size_t)__builtin_ctzll(set->levels[level][number]);
    return number;
}

/* The lowest number in the set at or above `from`; there must be one. */
size_t lowest_set_next(const struct lowest_set *set, size_t from);

#endif
