/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lowest_set.h"

#include <assert.h>
#include <berth/error.h>
#include <stdlib.h>

int lowest_set_init(struct lowest_set *set, size_t size)
{
    *set = (struct lowest_set){0};
    do {
        assert(set->depth < LOWEST_SET_LEVELS);
        size = (size + 63) / 64;
        if (size == 0)
            size = 1;
        set->levels[set->depth] = calloc(size, sizeof(uint64_t));
        if (set->levels[set->depth] == NULL) {
            lowest_set_finish(set);
            return BERTH_ERROR_MEMORY;
        }
        set->words[set->depth++] = size;
    } while (size > 1);
    return 0;
}

void lowest_set_finish(struct lowest_set *set)
{
    for (unsigned level = 0; level < LOWEST_SET_LEVELS; level++)
        free(set->levels[level]);
    *set = (struct lowest_set){0};
}

void lowest_set_mark(struct lowest_set *set, size_t word)
{
    for (unsigned level = 1; level < set->depth; level++) {
        uint64_t before = set->levels[level][word / 64];

        set->levels[level][word / 64] = before | UINT64_C(1) << (word % 64);
        if (before != 0)
            return;
        word /= 64;
    }
}

void lowest_set_unmark(struct lowest_set *set, size_t word)
{
    for (unsigned level = 1; level < set->depth; level++) {
        set->levels[level][word / 64] &= ~(UINT64_C(1) << (word % 64));
        if (set->levels[level][word / 64] != 0)
            return;
        word /= 64;
    }
}

size_t lowest_set_next(const struct lowest_set *set, size_t from)
{
    unsigned level = 0;

    /* Go up until a word has a bit at or above `from`. */
    for (; level < set->depth; level++) {
        uint64_t word = from / 64 < set->words[level] ? set->levels[level][from / 64] : 0;

        word &= UINT64_MAX << (from % 64);
        if (word != 0) {
            from = from / 64 * 64 + (size_t)__builtin_ctzll(word);
            break;
        }
        from = from / 64 + 1;
    }
    if (level == set->depth)
        return SIZE_MAX;
    while (level-- > 0)
        from = from * 64 + (size_t)__builtin_ctzll(set->levels[level][from]);
    return from;
}
