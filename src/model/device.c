/* SPDX-License-Identifier: Apache-2.0 */
#include "model/device.h"

const struct choice health_names[] = {
    {"ok", HEALTH_OK},
    {"sick", HEALTH_SICK},
    {0},
};

const struct choice device_kind_names[] = {
    {"integrated", DEVICE_KIND_INTEGRATED},
    {"discrete", DEVICE_KIND_DISCRETE},
    {0},
};

void device_finish(struct device *device)
{
    free(device->name);
    free(device->uuid);
    free(device->parent);
    free(device->cpus);
    free(device->health_reason);
    string_list_finish(&device->nodes);
    device_process_list_finish(&device->processes);
    *device = (struct device){0};
}

void device_list_finish(struct device_list *list)
{
    struct device *device;

    vector_for_each (device, list)
        device_finish(device);
    vector_finish(list);
}

size_t device_list_find(const struct device_list *list, struct device_id id)
{
    for (size_t slot = 0; slot < list->count; slot++) {
        if (device_id_equals(list->items[slot].id, id))
            return slot;
    }
    return list->count;
}
