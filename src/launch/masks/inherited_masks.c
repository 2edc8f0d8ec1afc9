/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/masks/inherited_masks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bitset.h"
#include "base/count.h"
#include "base/error.h"
#include "launch/masks/mask_entry.h"
#include "launch/masks/tile_mask.h"

/* The slots of one vendor's devices, in the order in which its runtime numbers them. */
struct vendor_view {
    VECTOR_OF(size_t);
};

struct resolving {
    const struct string_list *masks;
    const struct machine *machine;
    struct vendor_view view; /* devices of the current vendor that its first mask leaves */
    struct bitset allowed;   /* slots */
    bool has_mask;
};

/* The condition for a mask to count if there are other masks. */
enum mask_condition {
    ALWAYS,
    UNLESS_REPEATED, /* not if it equals the vendor's first mask, as batch systems set it */
    WITHOUT_HIP,     /* as above, and only without a HIP mask and without an nvidia device */
};

static const struct mask_rule {
    const char *name;
    enum vendor vendor;
    bool is_first;      /* the vendor's other masks number the devices that it leaves */
    bool by_ordinal;    /* numbers are positions among those devices, not indices of devices */
    bool empty_is_none; /* an empty mask hides all devices; otherwise it is ignored */
    bool by_tile;       /* parsed by tile_mask.h */
    bool of_container;  /* a mask of the container runtime */
    char part_mark;     /* character before the number of a partition or tile; 0: none */
    enum mask_condition condition;
} rules[] = {
    {"CUDA_VISIBLE_DEVICES", VENDOR_NVIDIA, .empty_is_none = true},
    {"NVIDIA_VISIBLE_DEVICES", VENDOR_NVIDIA, .of_container = true, .part_mark = ':'},
    {"ROCR_VISIBLE_DEVICES", VENDOR_AMD, .is_first = true, .empty_is_none = true},
    {"HIP_VISIBLE_DEVICES", VENDOR_AMD, .by_ordinal = true},
    {"CUDA_VISIBLE_DEVICES", VENDOR_AMD, .by_ordinal = true, .condition = WITHOUT_HIP},
    {"GPU_DEVICE_ORDINAL", VENDOR_AMD, .by_ordinal = true, .condition = UNLESS_REPEATED},
    {"ZE_AFFINITY_MASK", VENDOR_INTEL, .by_tile = true},
};

/* Variables that set how masks number devices. */
#define HIERARCHY "ZE_FLAT_DEVICE_HIERARCHY"
#define PCI_ORDER "ZE_ENABLE_PCI_ID_DEVICE_ORDER"
static const char *const meanings[] = {HIERARCHY, PCI_ORDER};

/* Returns the value of the first entry with this name, as getenv does, or NULL. */
static const char *find_mask(const struct string_list *masks, const char *name)
{
    char *const *entry;

    vector_for_each (entry, masks) {
        const char *value = mask_entry_value(*entry, name);

        if (value != NULL)
            return value;
    }
    return NULL;
}

bool inherited_masks_is_setting(const char *assignment)
{
    for (size_t i = 0; i < COUNT(meanings); i++) {
        if (mask_entry_value(assignment, meanings[i]) != NULL)
            return true;
    }
    return false;
}

/* Returns the name of the mask or setting that is assigned, or NULL for any other variable. */
static const char *mask_name(const char *assignment)
{
    for (size_t i = 0; i < COUNT(rules); i++) {
        if (mask_entry_value(assignment, rules[i].name) != NULL)
            return rules[i].name;
    }
    for (size_t i = 0; i < COUNT(meanings); i++) {
        if (mask_entry_value(assignment, meanings[i]) != NULL)
            return meanings[i];
    }
    return NULL;
}

int inherited_masks_collect(char *const *environment, struct string_list *ret_masks,
                            struct berth_error *error)
{
    struct string_list masks = {0};

    for (; *environment != NULL; environment++) {
        const char *name = mask_name(*environment);

        if (name != NULL && find_mask(&masks, name) == NULL &&
            string_list_append(&masks, *environment) < 0) {
            string_list_finish(&masks);
            return error_set_memory(error);
        }
    }
    *ret_masks = masks;
    return 0;
}

static const struct device *device_at(const struct resolving *resolving, size_t place)
{
    return &resolving->machine->devices.items[resolving->view.items[place]];
}

static bool is_named(const struct mask_named *named, const struct device *device)
{
    if (!named->is_number)
        return device->uuid != NULL &&
               strncasecmp(device->uuid, named->uuid.text, named->uuid.length) == 0;
    return device->id.index == named->number && (!named->has_part || device->id.mig == named->part);
}

/* Returns the position in the view of the device that an entry names, or of its first partition.
 * Returns the view's count if the entry names no device, or is a prefix of several UUIDs. */
static size_t find_named(const struct resolving *resolving, const struct mask_rule *rule,
                         const struct mask_named *named)
{
    size_t none = resolving->view.count;
    size_t found = none;

    if (named->is_number && rule->by_ordinal)
        return named->number < none ? named->number : none;
    for (size_t place = 0; place < none; place++) {
        if (!is_named(named, device_at(resolving, place)))
            continue;
        if (named->is_number || strlen(device_at(resolving, place)->uuid) == named->uuid.length)
            return place;
        if (found != none)
            return none;
        found = place;
    }
    return found;
}

struct selection {
    struct vendor_view order;
    struct bitset members; /* slots */
};

static int select_place(const struct resolving *resolving, size_t place,
                        struct selection *selection)
{
    size_t slot = resolving->view.items[place];
    size_t *added = vector_append(&selection->order);

    if (added == NULL)
        return BERTH_ERROR_MEMORY;
    *added = slot;
    bitset_add(&selection->members, slot);
    return 0;
}

/* Selects the device that was found, and all partitions of a GPU. */
static int select_found(const struct resolving *resolving, size_t found,
                        const struct mask_named *named, struct selection *selection)
{
    const struct device *device = device_at(resolving, found);
    bool is_whole = device->id.mig == DEVICE_NO_MIG || (named->is_number && !named->has_part);
    int code = select_place(resolving, found, selection);

    for (size_t place = 0; is_whole && code == 0 && place < resolving->view.count; place++) {
        if (place != found && device_at(resolving, place)->id.index == device->id.index &&
            !bitset_has(&selection->members, resolving->view.items[place]))
            code = select_place(resolving, place, selection);
    }
    return code;
}

/* Selects the devices that a list names, up to the first entry that is malformed, names no device
 * here or names a device again. */
static int select_listed(const struct resolving *resolving, const struct mask_rule *rule,
                         const char *list, struct selection *selection)
{
    struct mask_entry entry;
    struct mask_named named;
    int code = 0;

    while (code == 0 && mask_entry_next(&list, &entry) &&
           mask_entry_parse(entry, rule->part_mark, &named)) {
        size_t found = find_named(resolving, rule, &named);

        if (found == resolving->view.count ||
            bitset_has(&selection->members, resolving->view.items[found]))
            break;
        code = select_found(resolving, found, &named, selection);
    }
    return code;
}

/* Returns true if a list has only numbers, as many as there are GPUs here, but not all of them
 * exist here. Then a container runtime has chosen GPUs by their numbers on the host, and exactly
 * those are visible here. */
static bool is_chosen_already(const struct resolving *resolving, const struct mask_rule *rule,
                              const char *list)
{
    size_t listed = 0;
    size_t here = 0;
    bool all_here = true;
    struct mask_entry entry;
    struct mask_named named;

    while (mask_entry_next(&list, &entry)) {
        if (!mask_entry_parse(entry, rule->part_mark, &named) || !named.is_number || named.has_part)
            return false;
        all_here = all_here && find_named(resolving, rule, &named) < resolving->view.count;
        listed++;
    }
    for (size_t place = 0; place < resolving->view.count; place++)
        here += place == 0 ||
                device_at(resolving, place)->id.index != device_at(resolving, place - 1)->id.index;
    return !all_here && listed == here;
}

/* Returns true if a mask does not limit the devices. */
static bool is_no_limit(const struct resolving *resolving, const struct mask_rule *rule,
                        const char *value)
{
    if (value[strspn(value, " \t")] == '\0')
        return !rule->empty_is_none;
    if (!rule->of_container)
        return false;
    /* A value with a slash is a directory of mounts or a CDI name, for the runtime only. */
    return strcmp(value, "all") == 0 || strchr(value, '/') != NULL ||
           is_chosen_already(resolving, rule, value);
}

static bool has_vendor(const struct machine *machine, enum vendor vendor)
{
    const struct device *device;

    vector_for_each (device, &machine->devices) {
        if (device->id.vendor == vendor)
            return true;
    }
    return false;
}

static bool mask_counts(const struct resolving *resolving, const struct mask_rule *rule)
{
    const char *first = find_mask(resolving->masks, "ROCR_VISIBLE_DEVICES");
    const char *of_hip = find_mask(resolving->masks, "HIP_VISIBLE_DEVICES");

    if (rule->condition == ALWAYS)
        return true;
    if (first != NULL && strcmp(first, find_mask(resolving->masks, rule->name)) == 0)
        return false;
    return rule->condition == UNLESS_REPEATED || ((of_hip == NULL || of_hip[0] == '\0') &&
                                                  !has_vendor(resolving->machine, VENDOR_NVIDIA));
}

/* Removes the cards without a visible tile. */
static void apply_tiles(struct resolving *resolving, const char *value)
{
    struct tile_mask mask = tile_mask_read(value, find_mask(resolving->masks, HIERARCHY));
    struct tiles_position place = {0};

    if (mask.list == NULL)
        return;
    resolving->has_mask = true;
    for (size_t i = 0; i < resolving->view.count; i++) {
        uint32_t tiles = tiles_count(device_at(resolving, i));

        if (tile_mask_visible(&mask, place, tiles) == 0)
            bitset_remove(&resolving->allowed, resolving->view.items[i]);
        place.ordinal++;
        place.first_tile += tiles;
    }
}

static int apply_mask(struct resolving *resolving, const struct mask_rule *rule)
{
    const char *value = find_mask(resolving->masks, rule->name);
    struct selection selection = {0};
    int code;

    if (value == NULL || resolving->view.count == 0 || !mask_counts(resolving, rule) ||
        is_no_limit(resolving, rule, value))
        return 0;
    if (rule->by_tile) {
        apply_tiles(resolving, value);
        return 0;
    }
    resolving->has_mask = true;
    code = bitset_init(&selection.members, resolving->machine->devices.count);
    if (code < 0)
        return code;
    code = select_listed(resolving, rule, value, &selection);
    for (size_t place = 0; place < resolving->view.count; place++) {
        if (!bitset_has(&selection.members, resolving->view.items[place]))
            bitset_remove(&resolving->allowed, resolving->view.items[place]);
    }
    if (rule->is_first) {
        vector_finish(&resolving->view);
        resolving->view = selection.order;
        selection.order = (struct vendor_view){0};
    }
    vector_finish(&selection.order);
    bitset_finish(&selection.members);
    return code;
}

struct slot_order {
    const struct device *devices;
    bool integrated_last;
};

/* Compares by index, then MIG number: a GPU comes before its partitions. With `integrated_last`,
 * all integrated GPUs come last. */
static int compare_slots(const void *one, const void *other, void *context)
{
    const struct slot_order *ordering = context;
    const struct device *one_device = &ordering->devices[*(const size_t *)one];
    const struct device *other_device = &ordering->devices[*(const size_t *)other];
    struct device_id left = one_device->id;
    struct device_id right = other_device->id;
    bool is_integrated = one_device->kind == DEVICE_KIND_INTEGRATED;

    if (ordering->integrated_last &&
        is_integrated != (other_device->kind == DEVICE_KIND_INTEGRATED))
        return is_integrated ? 1 : -1;
    if (left.index != right.index)
        return left.index < right.index ? -1 : 1;
    /* DEVICE_NO_MIG is the largest number, so adding 1 makes it 0. */
    return left.mig + 1 < right.mig + 1 ? -1 : left.mig + 1 > right.mig + 1;
}

/* Returns true if integrated GPUs come last, as in Level Zero without PCI order. */
static bool counts_integrated_last(const struct resolving *resolving, enum vendor vendor)
{
    const char *order = find_mask(resolving->masks, PCI_ORDER);

    return vendor == VENDOR_INTEL && (order == NULL || strtol(order, NULL, 10) == 0);
}

static int fill_view(struct resolving *resolving, enum vendor vendor)
{
    const struct device_list *devices = &resolving->machine->devices;
    struct slot_order ordering = {
        .devices = devices->items,
        .integrated_last = counts_integrated_last(resolving, vendor),
    };

    resolving->view.count = 0;
    for (size_t slot = 0; slot < devices->count; slot++) {
        size_t *place;

        if (devices->items[slot].id.vendor != vendor)
            continue;
        place = vector_append(&resolving->view);
        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = slot;
    }
    if (resolving->view.count > 1)
        qsort_r(resolving->view.items, resolving->view.count, sizeof(size_t), compare_slots,
                &ordering);
    return 0;
}

static int apply_all_masks(struct resolving *resolving)
{
    int code = bitset_init(&resolving->allowed, resolving->machine->devices.count);

    if (code < 0)
        return code;
    bitset_fill(&resolving->allowed);
    for (size_t i = 0; i < COUNT(rules) && code == 0; i++) {
        if (i == 0 || rules[i].vendor != rules[i - 1].vendor)
            code = fill_view(resolving, rules[i].vendor);
        if (code == 0)
            code = apply_mask(resolving, &rules[i]);
    }
    return code;
}

static int list_allowed(const struct resolving *resolving, struct device_id_list *ids)
{
    bitset_for_each (slot, &resolving->allowed) {
        struct device_id *id = vector_append(ids);

        if (id == NULL)
            return BERTH_ERROR_MEMORY;
        *id = resolving->machine->devices.items[slot].id;
    }
    return 0;
}

int inherited_masks_resolve(const struct string_list *masks, const struct machine *machine,
                            struct device_id_list *ret_ids, bool *ret_has_mask,
                            struct berth_error *error)
{
    struct resolving resolving = {.masks = masks, .machine = machine};
    struct device_id_list ids = {0};
    int code = masks->count == 0 ? 0 : apply_all_masks(&resolving);

    if (code == 0 && resolving.has_mask)
        code = list_allowed(&resolving, &ids);
    vector_finish(&resolving.view);
    bitset_finish(&resolving.allowed);
    if (code < 0) {
        vector_finish(&ids);
        return error_set_memory(error);
    }
    *ret_ids = ids;
    *ret_has_mask = resolving.has_mask;
    return 0;
}

int inherited_masks_find_visible(const struct string_list *masks, const struct machine *machine,
                                 struct bitset *ret_visible, struct berth_error *error)
{
    struct resolving resolving = {.masks = masks, .machine = machine};
    int code = apply_all_masks(&resolving);

    vector_finish(&resolving.view);
    if (code < 0) {
        bitset_finish(&resolving.allowed);
        return error_set_memory(error);
    }
    *ret_visible = resolving.allowed;
    return 0;
}

int inherited_masks_narrow(char *const *environment, struct machine *machine,
                           struct berth_error *error)
{
    struct string_list masks = {0};
    struct bitset visible;
    int code = inherited_masks_collect(environment, &masks, error);

    if (code == 0)
        code = inherited_masks_find_visible(&masks, machine, &visible, error);
    string_list_finish(&masks);
    if (code < 0)
        return code;
    code = machine_keep(machine, &visible, NULL, error);
    bitset_finish(&visible);
    return code;
}
