/* SPDX-License-Identifier: Apache-2.0
 *
 * ZE_AFFINITY_MASK as Level Zero reads it. Where ZE_FLAT_DEVICE_HIERARCHY is COMPOSITE, N names a
 * card and N.T one tile of it. Else N names a tile, counted over all cards, and N.T nothing. What
 * is not here, or named again, does not end the list; what is no entry at all does.
 */
#ifndef LAUNCH_TILE_MASK_H
#define LAUNCH_TILE_MASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"
#include "model/tiles.h"

/* Points to the environment's texts. */
struct tile_mask {
    bool composite;
    const char *list; /* NULL: no limit */
};

/* From the values of ZE_AFFINITY_MASK and ZE_FLAT_DEVICE_HIERARCHY; NULL: not there. */
struct tile_mask tile_mask_read(const char *affinity, const char *hierarchy);

/* The tiles of a card that the mask leaves, as bits 1 << tile. `tiles` are at most
 * DEVICE_TILES_MAX. */
uint32_t tile_mask_visible(const struct tile_mask *mask, struct tiles_position place,
                           uint32_t tiles);

/* Appends what the mask calls these tiles of a card, with commas between them. */
void tile_mask_append(const struct tile_mask *mask, struct tiles_position place, uint32_t tiles,
                      uint32_t chosen, struct text *out);

#endif
