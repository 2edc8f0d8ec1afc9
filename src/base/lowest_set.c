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
        set->depth++;
    } while (size > 1);
    return 0;
}

void lowest_set_finish(struct lowest_set *set)
{
    for (unsigned level = 0; level < LOWEST_SET_LEVELS; level++)
        free(set->levels[level]);
    *set = (struct lowest_set){0};
}

size_t lowest_set_next(const struct lowest_set *set, size_t from)
{
    unsigned level = 0;

    for (; level < set->depth; level++) {
        uint64_t word = set->levels[level][from / 64] >> (from % 64);

        if (word != 0) {
            from += (size_t)__builtin_ctzll(word);
            break;
        }
        /* Nothing is left in this word: look for the next word that has something. */
        from = from / 64 + 1;
    }
    assert(level < set->depth);
    while (level-- > 0)
        from = from * 64 + (size_t)__builtin_ctzll(set->levels[level][from]);
    return from;
}
