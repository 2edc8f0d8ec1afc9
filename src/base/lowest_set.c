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
