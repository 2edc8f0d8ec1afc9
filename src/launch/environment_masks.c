/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/environment_masks.h"

#include "base/count.h"
#include "base/error.h"
#include "launch/masks/mask_entry.h"
#include "launch/masks/tile_mask.h"

/* How a mask names a device. */
enum naming {
    NAMING_TILES,       /* by number of the card or of its tiles (tile_mask.h) */
    NAMING_AS_WANTED,   /* by index; by UUID with --uuid, for MPS and for MIG, which has no index */
    NAMING_UUID_IF_ALL, /* by UUID; by index if the UUID of a device is unknown */
};

static const struct vendor_masks {
    struct vendor_mask {
        enum variable variable;
        enum naming naming;
        /* The value that hides all devices. For some masks an empty value means all devices. */
        const char *hidden;
        bool mixes; /* UUIDs and indices may be mixed: a partition without a UUID has an index */
    } masks[2];
    /* The variable that makes the runtime number devices as berth does. */
    enum variable order;
    const char *order_value;
    /* Another vendor's mask that this vendor's runtime reads too, unless the variable `read_before`
     * is set. `read_before` selects among the devices that the vendor's own mask leaves. */
    enum variable also_read;
    enum variable read_before;
} vendor_masks[VENDOR_DRI + 1] = {
    [VENDOR_NVIDIA] =
        {
            .masks =
                {
                    {.variable = CUDA_VISIBLE_DEVICES, .naming = NAMING_AS_WANTED, .hidden = "-1"},
                    {.variable = NVIDIA_VISIBLE_DEVICES,
                     .naming = NAMING_UUID_IF_ALL,
                     .hidden = "void"},
                },
            .order = CUDA_DEVICE_ORDER,
            .order_value = "PCI_BUS_ID",
        },
    [VENDOR_AMD] =
        {
            .masks = {{.variable = ROCR_VISIBLE_DEVICES,
                       .naming = NAMING_AS_WANTED,
                       .hidden = "-1",
                       .mixes = true}},
            .also_read = CUDA_VISIBLE_DEVICES,
            .read_before = HIP_VISIBLE_DEVICES,
        },
    [VENDOR_INTEL] =
        {
            .masks = {{.variable = ZE_AFFINITY_MASK, .naming = NAMING_TILES, .hidden = "99999"}},
            .order = ZE_ENABLE_PCI_ID_DEVICE_ORDER,
            .order_value = "1",
        },
    /* Other vendors have no masks. */
};

/* Variables that would narrow or replace the masks of the lease. */
static const enum variable never_inherited[] = {
    HIP_VISIBLE_DEVICES,
    GPU_DEVICE_ORDINAL,
    ONEAPI_DEVICE_SELECTOR,
};

struct masking {
    const struct launch_facts *facts;
    const struct device *devices;
    const struct device *devices_end;
    struct tile_mask inherited; /* the inherited mask of tiles, and how it numbers them */
    struct environment_changes *changes;
};

/* Returns true if a mask of this vendor and naming contains UUIDs. */
static bool uses_uuids(const struct masking *masking, enum vendor vendor, enum naming naming)
{
    bool all_known = true;
    bool has_partition = false;

    for (const struct device *device = masking->devices; device < masking->devices_end; device++) {
        if (device->id.vendor != vendor)
            continue;
        all_known = all_known && device->uuid != NULL;
        has_partition = has_partition || device->id.mig != DEVICE_NO_MIG;
    }
    if (naming == NAMING_AS_WANTED)
        return masking->facts->uuid || masking->facts->mps != NULL || has_partition;
    return naming == NAMING_UUID_IF_ALL && all_known;
}

static uint32_t number_or(struct optional_number number, uint32_t otherwise)
{
    return number.known && number.value <= UINT32_MAX ? (uint32_t)number.value : otherwise;
}

/* Appends the tiles of the device that the inherited mask leaves. */
static void append_tiles(const struct masking *masking, const struct device *device,
                         struct text *value)
{
    uint32_t tiles = tiles_count(device);
    struct tiles_position place = {
        .ordinal = number_or(device->ordinal, device->id.index),
        .first_tile = number_or(device->first_tile, device->id.index),
    };
    uint32_t left = tile_mask_visible(&masking->inherited, place, tiles);

    /* A mask that leaves none comes from another host or uses another order: use all tiles. */
    if (left == 0)
        left = (UINT32_C(1) << tiles) - 1;
    tile_mask_append(&masking->inherited, place, tiles, left, value);
}

static int set_mask(struct masking *masking, enum vendor vendor, const struct vendor_mask *rule,
                    struct berth_error *error)
{
    bool by_uuid = uses_uuids(masking, vendor, rule->naming);
    struct text *value = environment_changes_begin_value(masking->changes, rule->variable);
    const char *separator = "";

    for (const struct device *device = masking->devices; device < masking->devices_end; device++) {
        if (device->id.vendor != vendor)
            continue;
        text_append(value, separator);
        separator = ",";
        if (rule->naming == NAMING_TILES)
            append_tiles(masking, device, value);
        else if (by_uuid && device->uuid != NULL)
            text_append(value, device->uuid);
        else if (!by_uuid || (rule->mixes && device->parent != NULL))
            text_append_number(value, device->id.index);
        else
            return error_set(
                error, BERTH_ERROR_INVALID, "the UUID of %s is not known, but %s needs it",
                device_id_format(device->id).text, launch_variable_name(rule->variable));
    }
    return 0;
}

static size_t count_of_vendor(const struct masking *masking, enum vendor vendor)
{
    size_t count = 0;

    for (const struct device *device = masking->devices; device < masking->devices_end; device++)
        count += device->id.vendor == vendor;
    return count;
}

static int set_vendor_masks(struct masking *masking, enum vendor vendor, struct berth_error *error)
{
    const struct vendor_masks *rule = &vendor_masks[vendor];
    bool is_leased = count_of_vendor(masking, vendor) > 0;

    if (!is_leased && (masking->facts->vendors & UINT32_C(1) << vendor) == 0)
        return 0;
    for (size_t i = 0; i < COUNT(rule->masks) && rule->masks[i].variable != VARIABLE_NONE; i++) {
        int code = 0;

        if (is_leased)
            code = set_mask(masking, vendor, &rule->masks[i], error);
        else
            environment_changes_set(masking->changes, rule->masks[i].variable,
                                    rule->masks[i].hidden);
        if (code < 0)
            return code;
    }
    if (is_leased && rule->order != VARIABLE_NONE)
        environment_changes_set(masking->changes, rule->order, rule->order_value);
    return 0;
}

/* Prevents another vendor's mask, set or inherited, from narrowing this vendor's mask. */
static void shield_vendor(struct masking *masking, enum vendor vendor)
{
    const struct vendor_masks *rule = &vendor_masks[vendor];
    size_t count = count_of_vendor(masking, vendor);
    struct text *value;

    if (rule->also_read == VARIABLE_NONE || count == 0)
        return;
    if (!environment_changes_is_set(masking->changes, rule->also_read)) {
        environment_changes_remove(masking->changes, rule->also_read);
        return;
    }
    value = environment_changes_begin_value(masking->changes, rule->read_before);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text_append_char(value, ',');
        text_append_number(value, i);
    }
}

/* Returns the value of the first entry with this name, as getenv does, or NULL. */
static const char *find_value(char *const *environment, enum variable variable)
{
    for (; *environment != NULL; environment++) {
        const char *value = mask_entry_value(*environment, launch_variable_name(variable));

        if (value != NULL)
            return value;
    }
    return NULL;
}

int environment_masks_set(const struct launch_facts *facts, char *const *inherited,
                          struct environment_changes *changes, struct berth_error *error)
{
    struct masking masking = {
        .facts = facts,
        .inherited = tile_mask_read(find_value(inherited, ZE_AFFINITY_MASK),
                                    find_value(inherited, ZE_FLAT_DEVICE_HIERARCHY)),
        .changes = changes,
    };

    if (facts->lease != 0 && facts->device_count > 0) {
        masking.devices = facts->devices;
        masking.devices_end = facts->devices + facts->device_count;
    }
    for (size_t i = 0; i < COUNT(never_inherited); i++)
        environment_changes_remove(changes, never_inherited[i]);
    for (enum vendor vendor = 0; vendor < COUNT(vendor_masks); vendor++) {
        int code = set_vendor_masks(&masking, vendor, error);

        if (code < 0)
            return code;
    }
    for (enum vendor vendor = 0; vendor < COUNT(vendor_masks); vendor++)
        shield_vendor(&masking, vendor);
    return 0;
}
