/* SPDX-License-Identifier: Apache-2.0
 *
 * Level Zero's numbers of Intel GPUs and their tiles. With ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE each
 * GPU is a device, and M.N is tile N of GPU M. Otherwise each tile is a device. Both are numbered
 * in PCI order, as berth's indices are, but without gaps.
 */
#ifndef MODEL_MACHINE_TILES_H
#define MODEL_MACHINE_TILES_H

#include "model/machine/machine.h"

/* Returns the number of tiles of the device, or 1 when it is unknown or invalid. */
uint32_t tiles_count(const struct device *device);

struct tiles_position {
    uint32_t ordinal;    /* the device's number among its vendor's devices on its host */
    uint32_t first_tile; /* the number of its first tile among these devices' tiles */
};

/* Returns the position of the device in this slot, by the indices of all devices. */
struct tiles_position tiles_find_position(const struct machine *machine, size_t slot);

#endif
