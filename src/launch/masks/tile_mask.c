/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/masks/tile_mask.h"

#include <string.h>

#include "launch/masks/mask_entry.h"

#define TILE_MARK '.'

_Static_assert(DEVICE_TILES_MAX < 32, "tiles are bits of 32");

static uint32_t all_tiles(uint32_t tiles)
{
    return (UINT32_C(1) << tiles) - 1;
}

static bool is_no_limit(const char *affinity)
{
    return affinity == NULL || affinity[strspn(affinity, " \t")] == '\0' ||
           strcmp(affinity, "default") == 0;
}

struct tile_mask tile_mask_read(const char *affinity, const char *hierarchy)
{
    return (struct tile_mask){
        .composite = hierarchy != NULL && strcmp(hierarchy, "COMPOSITE") == 0,
        .list = is_no_limit(affinity) ? NULL : affinity,
    };
}

/* Returns the tiles of the card at `place` that one entry names. */
static uint32_t find_named(const struct tile_mask *mask, const struct mask_named *named,
                           struct tiles_position place, uint32_t tiles)
{
    if (!named->is_number)
        return 0;
    if (mask->composite) {
        if (named->number != place.ordinal)
            return 0;
        if (!named->has_part)
            return all_tiles(tiles);
        return named->part < tiles ? UINT32_C(1) << named->part : 0;
    }
    if (named->has_part || named->number < place.first_tile ||
        named->number - place.first_tile >= tiles)
        return 0;
    return UINT32_C(1) << (named->number - place.first_tile);
}

uint32_t tile_mask_visible(const struct tile_mask *mask, struct tiles_position place,
                           uint32_t tiles)
{
    const char *list = mask->list;
    struct mask_entry entry;
    struct mask_named named;
    uint32_t left = 0;

    if (list == NULL)
        return all_tiles(tiles);
    while (left != all_tiles(tiles) && mask_entry_next(&list, &entry) &&
           mask_entry_parse(entry, TILE_MARK, &named))
        left |= find_named(mask, &named, place, tiles);
    return left;
}

void tile_mask_append(const struct tile_mask *mask, struct tiles_position place, uint32_t tiles,
                      uint32_t chosen, struct text *out)
{
    const char *separator = "";

    if (mask->composite && chosen == all_tiles(tiles)) {
        text_append_number(out, place.ordinal);
        return;
    }
    for (uint32_t tile = 0; tile < tiles; tile++) {
        if ((chosen & UINT32_C(1) << tile) == 0)
            continue;
        text_append(out, separator);
        separator = ",";
        if (mask->composite) {
            text_append_number(out, place.ordinal);
            text_append_char(out, TILE_MARK);
            text_append_number(out, tile);
        } else {
            text_append_number(out, (uint64_t)place.first_tile + tile);
        }
    }
}
