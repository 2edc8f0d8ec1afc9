/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/internal.h"

static const struct device *device_at(const struct engine *engine, size_t slot)
{
    return &engine->machine.devices.items[slot];
}

static bool is_sick(const struct device *device)
{
    return device->health == HEALTH_SICK;
}

/* Returns whether the change of health must be reported. */
static bool health_differs(const struct device *before, const struct device *now)
{
    if (is_sick(before) != is_sick(now))
        return true;
    return is_sick(now) && now->health_reason != NULL &&
           (before->health_reason == NULL ||
            strcmp(before->health_reason, now->health_reason) != 0);
}

/* Whether two devices are the same piece of hardware; unknown without UUID and PCI address. */
enum sameness { SAME_UNKNOWN, SAME_YES, SAME_NO };

static enum sameness compare_hardware(const struct device *one, const struct device *other)
{
    if (one->uuid != NULL && other->uuid != NULL)
        return strcmp(one->uuid, other->uuid) == 0 ? SAME_YES : SAME_NO;
    if (one->pci.known && other->pci.known && one->parent == NULL && other->parent == NULL)
        return pci_compare(one->pci, other->pci) == 0 ? SAME_YES : SAME_NO;
    return SAME_UNKNOWN;
}

/* Returns whether the id now means another device, while a lease is on either of the two. Drivers
 * renumber their devices when one is gone. Such a device counts as gone, because otherwise it could
 * be granted twice. */
static bool is_renamed_under_a_lease(const struct engine *engine, size_t known,
                                     const struct device *from)
{
    for (size_t slot = 0; slot < engine->machine.devices.count; slot++) {
        enum sameness same = compare_hardware(device_at(engine, slot), from);
        struct slot_view view;

        engine_get_slot(engine, (uint32_t)slot, &view);
        if (view.taken && same == (slot == known ? SAME_NO : SAME_YES))
            return true;
    }
    return false;
}

/* Applies health, load and the members that do not influence decisions. */
static void observe_device(struct engine *engine, uint32_t slot, struct device *from)
{
    engine_device_health(engine, slot, from->health);
    if (from->old) {
        /* The processes are unknown now; those known before stay. */
        device_process_list_finish(&from->processes);
        from->processes = device_at(engine, slot)->processes;
        engine->machine.devices.items[slot].processes = (struct device_process_list){0};
        from->asleep = device_at(engine, slot)->asleep;
    } else if (!load_equals(&device_at(engine, slot)->load, &from->load)) {
        engine_set_load(engine, slot, &from->load);
    }
    engine_device_observe(engine, slot, from);
}

/* Applies the report of a device that has a slot. */
static unsigned apply_known_device(struct engine *engine, uint32_t slot, struct device *from,
                                   bool fixed)
{
    const struct device *before = device_at(engine, slot);
    unsigned changes = health_differs(before, from) ? DEVICE_HEALTH : 0;
    bool present = engine->status[slot].present;

    if (!present)
        changes |= DEVICE_BACK;
    if (!fixed && !from->old && !device_facts_equal(before, from))
        changes |= DEVICE_FACTS;
    if ((changes & DEVICE_FACTS) != 0) {
        struct load load = from->load;

        /* Cannot fail: the id and the host are the same. */
        engine_device_add(engine, from, &slot, NULL);
        engine_set_load(engine, slot, &load);
        return changes;
    }
    if (!present)
        engine_device_back(engine, slot);
    observe_device(engine, slot, from);
    return changes;
}

static void apply_gone_device(struct engine *engine, uint32_t slot,
                              const struct report_handler *handler)
{
    if (!engine->status[slot].present)
        return;
    engine_device_gone(engine, slot);
    if (handler->changed != NULL)
        handler->changed(handler->context, slot, DEVICE_GONE);
}

/* Returns whether the device must be ignored, because its id belongs to another device in a slot.
 */
static bool is_other_device(const struct engine *engine, size_t known, const struct device *from,
                            bool fixed)
{
    bool has_slot = known < engine->machine.devices.count;

    if (fixed)
        return has_slot && compare_hardware(device_at(engine, known), from) == SAME_NO;
    return is_renamed_under_a_lease(engine, known, from);
}

static int apply_device(struct engine *engine, struct device *from,
                        const struct report_handler *handler, struct berth_error *error)
{
    size_t known = device_list_find(&engine->machine.devices, from->id);
    bool has_slot = known < engine->machine.devices.count;
    uint32_t slot = (uint32_t)known;
    unsigned changes = DEVICE_ADDED;
    int code;

    if (is_other_device(engine, known, from, handler->fixed)) {
        if (has_slot)
            apply_gone_device(engine, slot, handler);
        return 0;
    }
    if (has_slot) {
        changes = apply_known_device(engine, slot, from, handler->fixed);
    } else {
        bool sick = is_sick(from);

        if (handler->fixed)
            return 0;
        code = engine_device_add(engine, from, &slot, error);
        if (code < 0)
            return code;
        changes |= sick ? DEVICE_HEALTH : 0;
    }
    if (changes != 0 && handler->changed != NULL)
        handler->changed(handler->context, slot, changes);
    return 0;
}

static void apply_missing_device(struct engine *engine, uint32_t slot, uint32_t listed,
                                 const struct report_handler *handler)
{
    if ((listed & UINT32_C(1) << device_at(engine, slot)->id.vendor) != 0)
        apply_gone_device(engine, slot, handler);
    else if (engine->status[slot].present)
        engine_device_mark_old(engine, slot);
}

/* Returns the slots of devices by their ids; engine->size for devices that were ignored. NULL: no
 * memory. */
static uint32_t *find_slots(const struct engine *engine, const struct device_id *ids, size_t count)
{
    uint32_t *slots = calloc(count + 1, sizeof(*slots));

    for (size_t i = 0; i < count && slots != NULL; i++) {
        size_t slot = device_list_find(&engine->machine.devices, ids[i]);
        bool is_here = slot < engine->machine.devices.count && engine->status[slot].present;

        slots[i] = (uint32_t)(is_here ? slot : engine->size);
    }
    return slots;
}

/* Replaces the report's indices of devices in links by slots, and drops links without slots. */
static void translate_links(struct link_list *links, const uint32_t *slots, size_t nowhere)
{
    size_t kept = 0;

    for (size_t i = 0; i < links->count; i++) {
        struct link link = links->items[i];
        uint32_t one = slots[link.between[0]];
        uint32_t other = slots[link.between[1]];

        if (one == nowhere || other == nowhere || one == other)
            continue;
        link.between[0] = one < other ? one : other;
        link.between[1] = one < other ? other : one;
        links->items[kept++] = link;
    }
    links->count = kept;
}

static int apply_links(struct engine *engine, struct link_list *links, const struct device_id *ids,
                       size_t count, struct berth_error *error)
{
    uint32_t *slots = find_slots(engine, ids, count);
    int code;

    if (slots == NULL)
        return error_set_memory(error);
    translate_links(links, slots, engine->size);
    code = engine_set_links(engine, links, error);
    free(slots);
    return code;
}

/* Copies the ids of devices, which will move out of the report. NULL: no memory. */
static struct device_id *copy_ids(const struct device_list *devices)
{
    struct device_id *ids = calloc(devices->count + 1, sizeof(*ids));

    for (size_t i = 0; i < devices->count && ids != NULL; i++)
        ids[i] = devices->items[i].id;
    return ids;
}

int engine_apply_report(struct engine *engine, struct machine_report *report,
                        const struct report_handler *handler, struct berth_error *error)
{
    struct device_list *found = &report->machine.devices;
    struct device_id *ids = copy_ids(found);
    struct device *device;
    int code = ids == NULL ? error_set_memory(error) : 0;

    for (uint32_t slot = 0; slot < engine->machine.devices.count; slot++) {
        if (device_list_find(found, device_at(engine, slot)->id) == found->count)
            apply_missing_device(engine, slot, report->listed, handler);
    }
    vector_for_each (device, found) {
        int failure = apply_device(engine, device, handler, code < 0 ? NULL : error);

        if (code == 0)
            code = failure;
    }
    if (!handler->fixed && ids != NULL) {
        int failure =
            apply_links(engine, &report->machine.links, ids, found->count, code < 0 ? NULL : error);

        if (code == 0)
            code = failure;
    }
    free(ids);
    machine_report_finish(report);
    return code;
}

void engine_mark_devices_old(struct engine *engine)
{
    for (uint32_t slot = 0; slot < engine->machine.devices.count; slot++)
        engine_device_mark_old(engine, slot);
}
