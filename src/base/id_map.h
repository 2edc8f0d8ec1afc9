/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds things by number: an intrusive hash table for numbers that are given out one after the
 * other, so that neighbours fall into neighbouring buckets. The map owns its buckets, not what is
 * in it. Not for use by two threads at once.
 */
#ifndef BASE_ID_MAP_H
#define BASE_ID_MAP_H

#include <stddef.h>
#include <stdint.h>

struct id_link {
    uint64_t id;
    struct id_link *next;
};

struct id_map {
    struct id_link **buckets;
    size_t mask; /* buckets - 1 */
};

/* An empty map. Returns 0 or BERTH_ERROR_MEMORY. */
int id_map_init(struct id_map *map);
void id_map_finish(struct id_map *map);

/* Makes `count` ids quick to find. Without memory for it nothing is lost but speed. */
void id_map_reserve(struct id_map *map, size_t count);

/* Adds a link whose id is set. Of several with the same id, the last one is found first, and the
 * others behind it. */
static inline void id_map_add(struct id_map *map, struct id_link *link)
{
    struct id_link **bucket = &map->buckets[link->id & map->mask];

    link->next = *bucket;
    *bucket = link;
}

/* The link of this id; NULL when there is none. */
static inline struct id_link *id_map_find(const struct id_map *map, uint64_t id)
{
    struct id_link *link = map->buckets[id & map->mask];

    while (link != NULL && link->id != id)
        link = link->next;
    return link;
}

/* Takes out a link that is in the map. */
static inline void id_map_remove(struct id_map *map, struct id_link *link)
{
    struct id_link **place = &map->buckets[link->id & map->mask];

    while (*place != link)
        place = &(*place)->next;
    *place = link->next;
}

#endif
