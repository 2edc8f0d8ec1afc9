/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/container.h"
#include "base/text/text.h"

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

static bool same_pci(struct pci_address one, struct pci_address other)
{
    return one.known == other.known && (!one.known || pci_compare(one, other) == 0);
}

static bool same_cap(struct capability one, struct capability other)
{
    return one.known == other.known &&
           (!one.known || (one.major == other.major && one.minor == other.minor));
}

static bool same_strings(const struct string_list *one, const struct string_list *other)
{
    for (size_t i = 0; i < one->count && i < other->count; i++) {
        if (strcmp(one->items[i], other->items[i]) != 0)
            return false;
    }
    return one->count == other->count;
}

bool device_facts_equal(const struct device *one, const struct device *other)
{
    return device_id_equals(one->id, other->id) && text_equals(one->name, other->name) &&
           text_equals(one->uuid, other->uuid) && text_equals(one->parent, other->parent) &&
           text_equals(one->cpus, other->cpus) && same_pci(one->pci, other->pci) &&
           optional_equals(one->memory_total, other->memory_total) &&
           optional_equals(one->numa, other->numa) && optional_equals(one->minor, other->minor) &&
           optional_equals(one->tiles, other->tiles) && same_cap(one->cap, other->cap) &&
           one->kind == other->kind && one->host == other->host &&
           one->partitioned == other->partitioned && same_strings(&one->nodes, &other->nodes);
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

int device_list_ids(const struct device_list *list, struct device_id_list *ids)
{
    const struct device *device;

    vector_for_each (device, list) {
        struct device_id *id = vector_append(ids);

        if (id == NULL)
            return BERTH_ERROR_MEMORY;
        *id = device->id;
    }
    return 0;
}

struct device_process *device_process_find(const struct device_process_list *list, uint64_t pid)
{
    struct device_process *process;

    vector_for_each (process, list) {
        if (process->pid == pid)
            return process;
    }
    return NULL;
}

struct device_process *device_process_find_or_add(struct device_process_list *list, uint64_t pid)
{
    struct device_process *process = device_process_find(list, pid);

    if (process != NULL || list->count >= DEVICE_PROCESSES_MAX)
        return process;
    process = vector_append(list);
    if (process != NULL)
        process->pid = pid;
    return process;
}

void device_process_advise(const struct device_process *process, struct text *out)
{
    if (process->container != NULL)
        text_append_format(
            out, "start it with 'berth cdi --arguments', or 'berth adopt --container %.*s'",
            container_shown_length(process->container), process->container);
}

/* Forgets the facts that the probe has set for the daemon only. */
static void forget_hints(struct device_process *process)
{
    process->said_lease = 0;
    free(process->said_socket);
    process->said_socket = NULL;
    process->owner = (struct optional_number){0};
    free((void *)process->ancestors);
    process->ancestors = NULL;
    process->ancestor_count = 0;
}

void device_process_finish(struct device_process *process)
{
    forget_hints(process);
    free(process->command);
    free(process->container);
    *process = (struct device_process){0};
}

void device_process_list_finish(struct device_process_list *list)
{
    struct device_process *process;

    vector_for_each (process, list)
        device_process_finish(process);
    vector_finish(list);
}
