/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/tiles.h"

uint32_t tiles_count(const struct device *device)
{
    struct optional_number tiles = device->tiles;

    return tiles.known && tiles.value <= DEVICE_TILES_MAX && tiles.value > 0 ? (uint32_t)tiles.value
                                                                             : 1;
}

struct tiles_position tiles_find_position(const struct machine *machine, size_t slot)
{
    const struct device *device = &machine->devices.items[slot];
    struct tiles_position place = {0};
    const struct device *other;

    vector_for_each (other, &machine->devices) {
        if (other->id.vendor != device->id.vendor || other->host != device->host ||
            other->id.index >= device->id.index)
            continue;
        place.ordinal++;
        place.first_tile += tiles_count(other);
    }
    return place;
}
