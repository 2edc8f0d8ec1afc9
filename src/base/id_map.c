/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id_map.h"

#include <berth/error.h>
#include <stdlib.h>

enum { FIRST_BUCKETS = 64 };

int id_map_init(struct id_map *map)
{
    *map = (struct id_map){.mask = FIRST_BUCKETS - 1};
    map->buckets = calloc(FIRST_BUCKETS, sizeof(struct id_link *));
    return map->buckets == NULL ? BERTH_ERROR_MEMORY : 0;
}

void id_map_finish(struct id_map *map)
{
    free(map->buckets);
    *map = (struct id_map){0};
}

void id_map_reserve(struct id_map *map, size_t count)
{
    struct id_map larger = {.mask = map->mask};

    while (larger.mask + 1 < count)
        larger.mask = larger.mask * 2 + 1;
    if (larger.mask == map->mask)
        return;
    larger.buckets = calloc(larger.mask + 1, sizeof(struct id_link *));
    if (larger.buckets == NULL)
        return;
    for (size_t i = 0; i <= map->mask; i++) {
        struct id_link *link = map->buckets[i];

        while (link != NULL) {
            struct id_link *next = link->next;

            id_map_add(&larger, link);
            link = next;
        }
    }
    free(map->buckets);
    *map = larger;
}
