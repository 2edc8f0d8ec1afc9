/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any bytes as a CDI file. An accepted file has names that a runtime accepts and device
 * files of the host. A refused file gets a message that names the file. Both can be added to a set
 * and searched.
 */
#include <stdint.h>
#include <string.h>

#include "base/count.h"
#include "spec/cdi_reader.h"
#include "support/require_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char file_name[] = "fuzz.yaml";

static void walk_name(const char *name)
{
    const char *slash = strchr(name, '/');
    const char *sign = strchr(name, '=');

    require(slash != NULL && slash != name && sign != NULL && slash + 1 < sign);
    require(sign[1] != '\0' && strpbrk(name, " ,\n\t'\"$\\") == NULL);
}

static void walk(const struct cdi_registry *entries)
{
    const struct cdi_entry *entry;
    const struct cdi_entry *other;
    size_t bytes = 0;
    char *const *node;

    require(entries->count > 0 && entries->count <= CDI_ENTRIES_MAX);
    vector_for_each (entry, entries) {
        walk_name(entry->name);
        for (other = entries->items; other < entry; other++)
            require(strcmp(other->name, entry->name) != 0);
        vector_for_each (node, &entry->nodes) {
            require((*node)[0] == '/' && strlen(*node) <= CDI_TEXT_MAX);
            bytes += strlen(*node);
        }
    }
    require(bytes <= CDI_BYTES_MAX);
}

/* Searches for the device with the device files of the first entry. A result must be an entry of
 * the file. */
static void look_for_device(const struct cdi_registry *registry)
{
    struct device device = {
        .id = {.vendor = VENDOR_NVIDIA, .mig = DEVICE_NO_MIG},
        .uuid = (char *)cdi_entry_device(&registry->items[0]),
        .nodes = registry->items[0].nodes,
    };

    for (int vendor = VENDOR_NVIDIA; vendor <= VENDOR_DRI; vendor++) {
        const struct cdi_entry *entry;
        const char *found;
        bool is_there = false;

        device.id.vendor = (enum vendor)vendor;
        found = cdi_registry_find(registry, &device);
        vector_for_each (entry, registry)
            is_there = is_there || (found == entry->name && !entry->ambiguous);
        require(found == NULL || is_there);
    }
}

static struct cdi_registry parse(const uint8_t *data, size_t size)
{
    struct cdi_registry entries = {0};

    require(cdi_reader_parse(file_name, (const char *)data, size, &entries, NULL) == 0);
    return entries;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct cdi_registry registry = {0};
    struct cdi_registry entries = {0};
    int code = cdi_reader_parse(file_name, (const char *)data, size, &entries, &error);

    if (code < 0) {
        require_message(&error, code);
        require(strncmp(error.message, file_name, strlen(file_name)) == 0);
        require(error.message[strlen(file_name)] == ':');
        return 0;
    }
    require(error.message[0] == '\0');
    walk(&entries);
    require(cdi_registry_merge(&registry, &entries, 0) == 0);
    look_for_device(&registry);
    /* A second copy in the same directory makes all entries invalid. */
    entries = parse(data, size);
    require(cdi_registry_merge(&registry, &entries, 0) == 0);
    for (size_t i = 0; i < registry.count; i++)
        require(registry.items[i].ambiguous);
    cdi_registry_finish(&registry);
    return 0;
}
