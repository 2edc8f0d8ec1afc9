/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cdi.h"

#include <berth/error.h>
#include <string.h>

/* The owner of a device file. */
enum node_owner {
    OF_ALL,        /* no GPU in particular */
    OF_NVIDIA,     /* one NVIDIA GPU: /dev/nvidia0 */
    OF_CAPABILITY, /* a MIG instance: /dev/nvidia-caps/nvidia-cap30 */
    OF_DRM,        /* one GPU of any vendor: /dev/dri/renderD128 */
};

void cdi_entry_finish(struct cdi_entry *entry)
{
    free(entry->name);
    string_list_finish(&entry->nodes);
    *entry = (struct cdi_entry){0};
}

void cdi_registry_finish(struct cdi_registry *registry)
{
    struct cdi_entry *entry;

    vector_for_each (entry, registry)
        cdi_entry_finish(entry);
    vector_finish(registry);
}

const char *cdi_entry_device(const struct cdi_entry *entry)
{
    const char *sign = strchr(entry->name, '=');

    return sign == NULL ? entry->name : sign + 1;
}

static struct cdi_entry *find_entry(const struct cdi_registry *registry, const char *name)
{
    struct cdi_entry *entry;

    vector_for_each (entry, registry) {
        if (strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

static void move_entry(struct cdi_entry *place, struct cdi_entry *entry)
{
    *place = *entry;
    *entry = (struct cdi_entry){0};
}

static int add_entry(struct cdi_registry *registry, struct cdi_entry *entry)
{
    struct cdi_entry *known = find_entry(registry, entry->name);

    if (known == NULL) {
        if (registry->count == CDI_ENTRIES_MAX)
            return BERTH_ERROR_LIMIT;
        known = vector_append(registry);
        if (known == NULL)
            return BERTH_ERROR_MEMORY;
        move_entry(known, entry);
    } else if (known->level == entry->level) {
        known->ambiguous = true;
    } else {
        entry->ambiguous = known->ambiguous;
        cdi_entry_finish(known);
        move_entry(known, entry);
    }
    return 0;
}

int cdi_registry_merge(struct cdi_registry *registry, struct cdi_registry *file, unsigned level)
{
    struct cdi_entry *entry;
    int code = 0;

    vector_for_each (entry, file) {
        entry->level = level;
        code = add_entry(registry, entry);
        if (code < 0)
            return code;
    }
    cdi_registry_finish(file);
    return 0;
}

static bool begins_with(const char *string, const char *beginning)
{
    return strncmp(string, beginning, strlen(beginning)) == 0;
}

static enum node_owner find_node_owner(const char *node)
{
    static const char nvidia[] = "/dev/nvidia";

    if (begins_with(node, "/dev/dri/"))
        return OF_DRM;
    if (begins_with(node, "/dev/nvidia-caps/"))
        return OF_CAPABILITY;
    if (begins_with(node, nvidia)) {
        const char *number = node + strlen(nvidia);

        if (*number != '\0' && number[strspn(number, "0123456789")] == '\0')
            return OF_NVIDIA;
    }
    return OF_ALL;
}

/* Returns whether the file belongs to the device, under its name or under udev's other name,
 * /dev/dri/by-path/pci-0000:03:00.0-render. */
static bool has_device_node(const struct device *device, const char *node)
{
    char *const *own;

    vector_for_each (own, &device->nodes) {
        if (strcmp(*own, node) == 0)
            return true;
    }
    return device->pci.known && begins_with(node, "/dev/dri/by-path/pci-") &&
           strstr(node, pci_format(device->pci).text) != NULL;
}

static bool is_named_by_uuid(const struct cdi_entry *entry, const struct device *device)
{
    return device->uuid != NULL && strcmp(cdi_entry_device(entry), device->uuid) == 0;
}

/* Counts the entry's files by owner. Returns false when one belongs to another device. The DRM
 * files of nvidia's GPUs are ignored, because they are not among the device's files. */
static bool count_nodes(const struct cdi_entry *entry, const struct device *device,
                        size_t counts[OF_DRM + 1])
{
    char *const *node;

    vector_for_each (node, &entry->nodes) {
        enum node_owner node_owner = find_node_owner(*node);

        counts[node_owner]++;
        if (node_owner == OF_ALL || (node_owner == OF_DRM && device->id.vendor == VENDOR_NVIDIA))
            continue;
        if (!has_device_node(device, *node))
            return false;
    }
    return true;
}

static bool is_entry_of_device(const struct cdi_entry *entry, const struct device *device)
{
    size_t counts[OF_DRM + 1] = {0};

    if (entry->ambiguous || strcmp(cdi_entry_device(entry), CDI_ALL) == 0 ||
        !count_nodes(entry, device, counts))
        return false;
    if (counts[OF_NVIDIA] + counts[OF_CAPABILITY] + counts[OF_DRM] == 0)
        return is_named_by_uuid(entry, device);
    if (device->id.mig != DEVICE_NO_MIG) /* the GPU's file alone is not enough */
        return counts[OF_CAPABILITY] > 0;
    return device->id.vendor == VENDOR_NVIDIA ? counts[OF_NVIDIA] > 0 : counts[OF_DRM] > 0;
}

const char *cdi_registry_find(const struct cdi_registry *registry, const struct device *device)
{
    const struct cdi_entry *entry;
    const char *first = NULL;

    vector_for_each (entry, registry) {
        if (!is_entry_of_device(entry, device))
            continue;
        if (is_named_by_uuid(entry, device))
            return entry->name;
        if (first == NULL)
            first = entry->name;
    }
    return first;
}
