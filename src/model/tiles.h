/* SPDX-License-Identifier: Apache-2.0
 *
 * How Level Zero counts Intel's GPUs and their tiles. With ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE every
 * GPU is a device, and M.N is tile N of GPU M; else every tile is one. Both are numbered along the
 * PCI bus, as our indices are, but without gaps.
 */
#ifndef MODEL_TILES_H
#define MODEL_TILES_H

#include "model/machine.h"

/* How many tiles the device has; 1 where that is unknown, or no number of tiles. */
uint32_t tiles_count(const struct device *device);

struct tiles_position {
    uint32_t ordinal;    /* of the device among its vendor's in its host */
    uint32_t first_tile; /* of its tiles among theirs */
};

/* The place of the device in this slot, by the indices of all. */
struct tiles_position tiles_find_position(const struct machine *machine, size_t slot);

#endif
