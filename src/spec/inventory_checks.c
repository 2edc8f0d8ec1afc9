/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/inventory_checks.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Slots sorted by a property of their devices. */
struct slot_order_list {
    size_t *slots;
    size_t count;
};

struct device_ordering {
    const struct device *devices;
    int (*compare)(const struct device *one, const struct device *other);
};

static int compare_numbers(uint32_t one, uint32_t other)
{
    return (one > other) - (one < other);
}

static int compare_ids(struct device_id one, struct device_id other)
{
    int order = compare_numbers(one.vendor, other.vendor);

    if (order == 0)
        order = compare_numbers(one.index, other.index);
    if (order == 0)
        order = compare_numbers(one.mig, other.mig);
    return order;
}

static int by_id(const struct device *one, const struct device *other)
{
    return compare_ids(one->id, other->id);
}

static int by_uuid(const struct device *one, const struct device *other)
{
    return strcmp(one->uuid, other->uuid);
}

static int by_pci(const struct device *one, const struct device *other)
{
    return pci_compare(one->pci, other->pci);
}

static bool has_id(const struct device *device)
{
    (void)device;
    return true;
}

static bool has_uuid(const struct device *device)
{
    return device->uuid != NULL;
}

/* Returns whether the device has its own address: partitions share that of their GPU. */
static bool has_own_pci(const struct device *device)
{
    return device->pci.known && device->parent == NULL;
}

/* Compares slots by device, then by slot, so that the later of two equal devices is the
 * duplicate. */
static int compare_slots(const void *one, const void *other, void *context)
{
    const struct device_ordering *ordering = context;
    size_t a = *(const size_t *)one;
    size_t b = *(const size_t *)other;
    int order = ordering->compare(&ordering->devices[a], &ordering->devices[b]);

    return order != 0 ? order : (a > b) - (a < b);
}

/* Sorts the slots of the devices that have the property. The caller frees ret_order->slots. */
static int sort_slots(const struct device_list *devices, bool (*has)(const struct device *),
                      int (*compare)(const struct device *, const struct device *),
                      struct slot_order_list *ret_order)
{
    struct device_ordering ordering = {.devices = devices->items, .compare = compare};
    struct slot_order_list order = {.slots = calloc(devices->count + 1, sizeof(size_t))};

    if (order.slots == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t slot = 0; slot < devices->count; slot++) {
        if (has(&devices->items[slot]))
            order.slots[order.count++] = slot;
    }
    qsort_r(order.slots, order.count, sizeof(size_t), compare_slots, &ordering);
    *ret_order = order;
    return 0;
}

/* Returns the first slot whose device compares equal to `wanted`, or the device count. */
static size_t find_slot(const struct device_list *devices, const struct slot_order_list *order,
                        int (*compare)(const struct device *, const struct device *),
                        const struct device *wanted)
{
    size_t low = 0;
    size_t high = order->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(&devices->items[order->slots[middle]], wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < order->count && compare(&devices->items[order->slots[low]], wanted) == 0)
        return order->slots[low];
    return devices->count;
}

/* A field that must be unique among devices. */
struct unique {
    const char *field; /* the field for the position of a duplicate */
    const char *what;
    int (*compare)(const struct device *, const struct device *);
};

static const struct unique unique_id = {"index", "device id", by_id};
static const struct unique unique_uuid = {"uuid", "uuid", by_uuid};
static const struct unique unique_pci = {"pci", "PCI address", by_pci};

/* Refuses a second device with the same id, uuid or address. */
static int check_unique(const struct field_reading *reading, const struct document_node *root,
                        const struct device_list *devices, const struct slot_order_list *order,
                        const struct unique *unique)
{
    const struct document_node *list = field_record_value(root, "devices");

    for (size_t i = 1; i < order->count; i++) {
        const struct device *earlier = &devices->items[order->slots[i - 1]];
        const struct document_node *later = list->items[order->slots[i]];

        if (unique->compare(earlier, &devices->items[order->slots[i]]) == 0)
            /* An alias of a device shares its fields, so use the position of the alias. */
            return document_error(
                reading->document,
                later->is_alias ? later : field_record_value(later, unique->field), reading->error,
                BERTH_ERROR_SYNTAX, "%s: expected each %s once, got that of %s again",
                unique->field, unique->what, device_id_format(earlier->id).text);
    }
    return 0;
}

static void mark_parents(struct device_list *devices, const struct slot_order_list *ids,
                         const struct slot_order_list *uuids)
{
    struct device *device;

    vector_for_each (device, devices) {
        struct device wanted = {.uuid = device->parent};
        size_t slot = devices->count;

        if (device->parent == NULL)
            continue;
        if (device_id_parse(device->parent, &wanted.id, NULL) == 0)
            slot = find_slot(devices, ids, by_id, &wanted);
        if (slot == devices->count)
            slot = find_slot(devices, uuids, by_uuid, &wanted);
        if (slot < devices->count && &devices->items[slot] != device)
            devices->items[slot].partitioned = true;
    }
}

int inventory_check_machine(const struct field_reading *reading, const struct document_node *node,
                            void *target)
{
    struct described_machine *described = target;
    struct device_list *devices = &described->devices;
    struct slot_order_list ids = {0};
    struct slot_order_list uuids = {0};
    struct slot_order_list addresses = {0};
    int code = 0;

    if (sort_slots(devices, has_id, by_id, &ids) < 0 ||
        sort_slots(devices, has_uuid, by_uuid, &uuids) < 0 ||
        sort_slots(devices, has_own_pci, by_pci, &addresses) < 0)
        code = error_set_memory(reading->error);
    if (code == 0)
        code = check_unique(reading, node, devices, &ids, &unique_id);
    if (code == 0)
        code = check_unique(reading, node, devices, &uuids, &unique_uuid);
    if (code == 0)
        code = check_unique(reading, node, devices, &addresses, &unique_pci);
    if (code == 0)
        mark_parents(devices, &ids, &uuids);
    free(ids.slots);
    free(uuids.slots);
    free(addresses.slots);
    return code;
}

int inventory_check_device(const struct field_reading *reading, const struct document_node *node,
                           void *target)
{
    struct device *device = target;
    struct device_id whole = device->id;

    if (device->load.memory_free.known && device->memory_total.known &&
        (uint64_t)device->load.memory_free.value > device->memory_total.value)
        return document_error(reading->document, field_record_value(node, "free"), reading->error,
                              BERTH_ERROR_SYNTAX, "free: expected at most the memory, %s, got %s",
                              document_node_describe(field_record_value(node, "memory")).text,
                              document_node_describe(field_record_value(node, "free")).text);
    if (device->tiles.known && device->id.vendor != VENDOR_INTEL)
        return document_error(reading->document, field_record_value(node, "tiles"), reading->error,
                              BERTH_ERROR_SYNTAX,
                              "tiles: only an intel device has tiles, got vendor %s",
                              vendor_name(device->id.vendor));
    if (device->id.mig == DEVICE_NO_MIG)
        return 0;
    if (device->id.vendor != VENDOR_NVIDIA)
        return document_error(reading->document, field_record_value(node, "mig"), reading->error,
                              BERTH_ERROR_SYNTAX,
                              "mig: only an nvidia device has partitions, got vendor %s",
                              vendor_name(device->id.vendor));
    whole.mig = DEVICE_NO_MIG;
    if (device->parent == NULL)
        device->parent = strdup(device_id_format(whole).text);
    return device->parent == NULL ? error_set_memory(reading->error) : 0;
}

int inventory_check_link(const struct field_reading *reading, const struct document_node *node,
                         void *target)
{
    const struct described_link *link = target;
    enum vendor maker = link->kind == LINK_XGMI ? VENDOR_AMD : VENDOR_NVIDIA;

    if (device_id_equals(link->between[0], link->between[1]))
        return document_error(reading->document, link->nodes[1], reading->error, BERTH_ERROR_SYNTAX,
                              "between: expected two devices, got %s twice",
                              device_id_format(link->between[0]).text);
    if (!link_is_fabric(link->kind))
        return link->lanes == 0
                   ? 0
                   : document_error(
                         reading->document, field_record_value(node, "lanes"), reading->error,
                         BERTH_ERROR_SYNTAX,
                         "lanes: only a link of kind nvlink or xgmi has lanes, got kind %s",
                         choice_name(link_kind_names, (int)link->kind));
    for (size_t i = 0; i < 2; i++) {
        if (link->between[i].vendor != maker)
            return document_error(reading->document, link->nodes[i], reading->error,
                                  BERTH_ERROR_SYNTAX, "between: %s joins %s devices, got %s",
                                  choice_name(link_kind_names, (int)link->kind), vendor_name(maker),
                                  device_id_format(link->between[i]).text);
    }
    return 0;
}

static int resolve_link(const struct field_reading *reading, const struct described_link *described,
                        const struct slot_order_list *ids, struct machine *machine)
{
    const struct device_list *devices = &machine->devices;
    struct link *link = vector_append(&machine->links);
    size_t slots[2];

    if (link == NULL)
        return error_set_memory(reading->error);
    for (size_t i = 0; i < 2; i++) {
        struct device wanted = {.id = described->between[i]};

        slots[i] = find_slot(devices, ids, by_id, &wanted);
        if (slots[i] == devices->count)
            return document_error(reading->document, described->nodes[i], reading->error,
                                  BERTH_ERROR_SYNTAX,
                                  "between: expected a device of this file, got %s",
                                  device_id_format(described->between[i]).text);
    }
    *link = (struct link){
        .between = {slots[0] < slots[1] ? slots[0] : slots[1],
                    slots[0] < slots[1] ? slots[1] : slots[0]},
        .kind = described->kind,
        .lanes = described->lanes,
    };
    return 0;
}

/* Compares links by pair and by whether they are fabric links. */
static int compare_links(const struct link *one, const struct link *other)
{
    for (size_t i = 0; i < 2; i++) {
        if (one->between[i] != other->between[i])
            return one->between[i] > other->between[i] ? 1 : -1;
    }
    return (int)link_is_fabric(one->kind) - (int)link_is_fabric(other->kind);
}

static int compare_link_positions(const void *one, const void *other, void *context)
{
    const struct link *links = context;
    size_t a = *(const size_t *)one;
    size_t b = *(const size_t *)other;
    int order = compare_links(&links[a], &links[b]);

    return order != 0 ? order : (a > b) - (a < b);
}

static int check_pairs(const struct field_reading *reading,
                       const struct described_machine *described, const struct machine *machine)
{
    size_t count = machine->links.count;
    size_t *positions = calloc(count + 1, sizeof(*positions));
    int code = 0;

    if (positions == NULL)
        return error_set_memory(reading->error);
    for (size_t i = 0; i < count; i++)
        positions[i] = i;
    qsort_r(positions, count, sizeof(*positions), compare_link_positions, machine->links.items);
    for (size_t i = 1; i < count && code == 0; i++) {
        const struct link *later = &machine->links.items[positions[i]];
        const struct described_link *place = &described->links.items[positions[i]];

        if (compare_links(&machine->links.items[positions[i - 1]], later) == 0)
            code = document_error(
                reading->document, place->nodes[0], reading->error, BERTH_ERROR_SYNTAX,
                "between: expected one %s for a pair, got a second for %s and %s",
                link_is_fabric(later->kind) ? "nvlink or xgmi link" : "PCIe path",
                device_id_format(place->between[0]).text, device_id_format(place->between[1]).text);
    }
    free(positions);
    return code;
}

int inventory_checks_resolve_links(const struct field_reading *reading,
                                   const struct described_machine *described,
                                   struct machine *machine)
{
    const struct described_link *link;
    struct slot_order_list ids;
    int code = 0;

    if (sort_slots(&machine->devices, has_id, by_id, &ids) < 0)
        return error_set_memory(reading->error);
    vector_for_each (link, &described->links) {
        code = resolve_link(reading, link, &ids, machine);
        if (code < 0)
            break;
    }
    free(ids.slots);
    return code < 0 ? code : check_pairs(reading, described, machine);
}
