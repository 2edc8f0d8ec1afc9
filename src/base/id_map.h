/* SPDX-License-Identifier: Apache-2.0
 *
 * An intrusive hash table for items that have consecutive ids: neighbouring ids fall into
 * neighbouring buckets. The map owns its buckets, but not its items. Only one thread may use a map
 * at a time.
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

/* Makes an empty map. Returns 0 or BERTH_ERROR_MEMORY. */
int id_map_init(struct id_map *map);
void id_map_finish(struct id_map *map);

/* Adds buckets for `count` ids. Without memory for them the map works, but more slowly. */
void id_map_reserve(struct id_map *map, size_t count);

/* Adds a link whose id is set. Among links with the same id, id_map_find finds the one that was
 * added last; the others come after it in the bucket. */
static inline void id_map_add(struct id_map *map, struct id_link *link)
{
    struct id_link **bucket = &map->buckets[link->id & map->mask];

    link->next = *bucket;
    *bucket = link;
}

/* Returns the link with this id, or NULL when there is none. */
static inline struct id_link *id_map_find(const struct id_map *map, uint64_t id)
{
    struct id_link *link = map->buckets[id & map->mask];

    while (link != NULL && link->id != id)
        link = link->next;
    return link;
}

/* Removes a link, which must be in the map. */
static inline void id_map_remove(struct id_map *map, struct id_link *link)
{
    struct id_link **place = &map->buckets[link->id & map->mask];

    while (*place != link)
        place = &(*place)->next;
    *place = link->next;
}

#endif
