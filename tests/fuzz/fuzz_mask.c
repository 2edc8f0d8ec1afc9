/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any text as masks of GPUs, one NAME=VALUE per line.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "launch/environment.h"
#include "launch/masks/inherited_masks.h"
#include "launch/masks/mask_entry.h"
#include "launch/masks/tile_mask.h"
#include "support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *id;
    const char *uuid;
    uint32_t tiles; /* 0: unknown */
} devices[] = {
    {"nvidia0", .uuid = "GPU-aaaa-1111"},
    {"nvidia0.1", .uuid = "MIG-bbbb-2222"},
    {"nvidia0.2", .uuid = "MIG-bbbb-3333"},
    {"nvidia3", .uuid = "GPU-aaaa-4444"},
    {"amd2", .uuid = "GPU-2f00"},
    {"amd0", .uuid = NULL},
    {"amd1", .uuid = "GPU-2f01"},
    {"intel0", .tiles = 2},
    {"intel4", .tiles = DEVICE_TILES_MAX},
    {"intel1", .tiles = 0},
    {"dri0", .tiles = 0},
};

/* Makes a machine with or without NVIDIA devices. The meaning of CUDA's mask depends on them. */
static struct machine make_machine(bool has_nvidia)
{
    struct machine machine = {0};

    for (size_t i = has_nvidia ? 0 : 4; i < COUNT(devices); i++) {
        struct device *device = vector_append(&machine.devices);

        require(device != NULL);
        require(device_id_parse(devices[i].id, &device->id, NULL) == 0);
        device->uuid = devices[i].uuid == NULL ? NULL : strdup(devices[i].uuid);
        if (devices[i].tiles > 0)
            device->tiles = optional_number_of(devices[i].tiles);
        device->kind = device->id.index == 0 ? DEVICE_KIND_INTEGRATED : DEVICE_KIND_DISCRETE;
    }
    return machine;
}

static void check(const struct string_list *masks, bool has_nvidia)
{
    struct machine machine = make_machine(has_nvidia);
    struct device_id_list ids = {0};
    size_t last = 0;
    bool has_mask;

    require(inherited_masks_resolve(masks, &machine, &ids, &has_mask, NULL) == 0);
    require(has_mask || ids.count == 0);
    /* Each device once, in the machine's order. */
    for (size_t i = 0; i < ids.count; i++) {
        size_t slot = device_list_find(&machine.devices, ids.items[i]);

        require(slot < machine.devices.count && (i == 0 || slot > last));
        last = slot;
    }
    /* A mask hides no device of a vendor without one. */
    require(!has_mask || (ids.count > 0 && last == machine.devices.count - 1));
    vector_finish(&ids);
    machine_finish(&machine);
}

static const char *value_of(char *const *environment, const char *name)
{
    for (; *environment != NULL; environment++) {
        if (mask_entry_value(*environment, name) != NULL)
            return mask_entry_value(*environment, name);
    }
    return NULL;
}

static uint32_t tiles_left(char *const *environment, const struct device *device)
{
    struct tile_mask mask = tile_mask_read(value_of(environment, "ZE_AFFINITY_MASK"),
                                           value_of(environment, "ZE_FLAT_DEVICE_HIERARCHY"));
    struct tiles_position place = {(uint32_t)device->ordinal.value,
                                   (uint32_t)device->first_tile.value};

    return tile_mask_visible(&mask, place, tiles_count(device));
}

/* Checks that a lease of one device shows no other device of its vendor, whatever was inherited. Of
 * the device's tiles it shows those that were visible before, or all of them if none was. */
static void check_lease(const struct machine *machine, const struct device *leased,
                        char *const *inherited)
{
    struct launch_facts facts = {
        .lease = 1, .devices = leased, .device_count = 1, .vendors = UINT32_MAX};
    uint32_t before = tiles_left(inherited, leased);
    struct string_list environment = {0}, masks = {0};
    struct device_id_list ids = {0};
    const struct device_id *id;
    bool has_mask;

    require(launch_environment(&facts, inherited, &environment, NULL) == 0);
    require(inherited_masks_collect(environment.items, &masks, NULL) == 0);
    require(inherited_masks_resolve(&masks, machine, &ids, &has_mask, NULL) == 0);
    require(device_id_list_has(&ids, leased->id));
    vector_for_each (id, &ids)
        require(id->vendor != leased->id.vendor || device_id_equals(*id, leased->id));
    if (leased->id.vendor == VENDOR_INTEL)
        require(tiles_left(environment.items, leased) ==
                (before != 0 ? before : (UINT32_C(1) << tiles_count(leased)) - 1));
    vector_finish(&ids);
    string_list_finish(&masks);
    string_list_finish(&environment);
}

static void check_leases(char *const *inherited)
{
    struct machine machine = make_machine(true);

    for (size_t slot = 0; slot < machine.devices.count; slot++) {
        struct tiles_position place = tiles_find_position(&machine, slot);
        struct device leased = machine.devices.items[slot];

        /* The first GPU is partitioned, and DRI devices have no mask. */
        if (slot == 0 || leased.id.vendor == VENDOR_DRI)
            continue;
        leased.ordinal = optional_number_of(place.ordinal);
        leased.first_tile = optional_number_of(place.first_tile);
        check_lease(&machine, &leased, inherited);
    }
    machine_finish(&machine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *lines = calloc(1, size + 1);
    struct string_list given = {0}, masks = {0};
    char *rest = lines;

    require(lines != NULL);
    if (size > 0)
        memcpy(lines, data, size);
    while (rest != NULL)
        require(string_list_append(&given, strsep(&rest, "\n")) == 0);
    check(&given, true);
    check(&given, false);
    require(vector_append(&given) != NULL);
    require(inherited_masks_collect(given.items, &masks, NULL) == 0);
    check(&masks, true);
    check_leases(given.items);
    string_list_finish(&masks);
    string_list_finish(&given);
    free(lines);
    return 0;
}
