/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads ZE_AFFINITY_MASK as Level Zero does. If ZE_FLAT_DEVICE_HIERARCHY is COMPOSITE, N names a
 * card and N.T one of its tiles. Otherwise N names a tile, numbered across all cards, and N.T names
 * nothing. An entry that names no tile here, or names a tile again, is skipped. A malformed entry
 * ends the list.
 */
#ifndef LAUNCH_MASKS_TILE_MASK_H
#define LAUNCH_MASKS_TILE_MASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"
#include "model/machine/tiles.h"

/* A mask. The strings are borrowed from the environment. */
struct tile_mask {
    bool composite;
    const char *list; /* NULL: no limit */
};

/* Makes the mask from the values of ZE_AFFINITY_MASK and ZE_FLAT_DEVICE_HIERARCHY; NULL: not set.
 */
struct tile_mask tile_mask_read(const char *affinity, const char *hierarchy);

/* Returns the tiles of a card that the mask leaves, as bits 1 << tile. `tiles` is at most
 * DEVICE_TILES_MAX. */
uint32_t tile_mask_visible(const struct tile_mask *mask, struct tiles_position place,
                           uint32_t tiles);

/* Appends the names of these tiles of a card as in a mask, separated by commas. */
void tile_mask_append(const struct tile_mask *mask, struct tiles_position place, uint32_t tiles,
                      uint32_t chosen, struct text *out);

#endif
