/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads one AMD device: first from KFD, PCI and the file system, which do not wake it, then from
 * its driver.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "hardware/amd/amd.h"
#include "hardware/amd/kfd.h"
#include "hardware/drm/drm.h"
#include "hardware/sysfs/hwmon.h"
#include "hardware/sysfs/locality.h"
#include "hardware/sysfs/pci_names.h"

/* A device that is being read. */
struct amd_reading {
    const struct sysroot *root;
    const char *path; /* NULL: unknown */
    struct amd_key key;
    struct kfd_node node; /* all unknown if KFD does not list the device */
    struct device *device;
};

/* Reads the node and checks that it is the same GPU: the kernel renumbers the nodes when GPUs are
 * added, removed or partitioned. */
static int read_node(struct amd_reading *reading, struct berth_error *error)
{
    struct amd_key *key = &reading->key;
    int result = kfd_read_node(reading->root, key->node, &reading->node);

    if (result < 0)
        return error_set_errno(error, -result, "cannot read KFD node %" PRIu32, key->node);
    if (reading->node.is_hidden)
        return error_set(error, BERTH_ERROR_PERMISSION,
                         "cannot read KFD node %" PRIu32 ": permission denied", key->node);
    if (key->gpu_id.known &&
        (!reading->node.gpu_id.known || reading->node.gpu_id.value != key->gpu_id.value))
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "KFD node %" PRIu32 ": expected the same GPU as before, got another",
                         key->node);
    if (!reading->node.location_id.known && !reading->node.simd_count.known)
        return error_set(error, BERTH_ERROR_INVALID,
                         "KFD node %" PRIu32 ": expected properties, got none", key->node);
    key->gpu_id = reading->node.gpu_id;
    return 0;
}

/* 90402 is gfx942, 90010 gfx90a, 110001 gfx1101. */
static struct capability capability_of(struct optional_number version)
{
    if (!version.known || version.value == 0 || version.value >= 1000 * 10000)
        return (struct capability){0};
    return (struct capability){.known = true,
                               .major = (uint16_t)(version.value / 10000),
                               .minor = (uint16_t)(version.value / 100 % 100)};
}

/* Names the device by its chip, if it has no other name. */
static int read_chip_name(struct amd_reading *reading, struct berth_error *error)
{
    uint64_t version = reading->node.gfx_target_version.value;
    char *name;

    if (!reading->device->cap.known)
        return 0;
    if (asprintf(&name, "AMD gfx%" PRIu64 "%" PRIx64 "%" PRIx64, version / 10000,
                 version / 100 % 100, version % 100) < 0)
        return error_set_memory(error);
    free(reading->device->name);
    reading->device->name = name;
    return 0;
}

/* Sets a name, which the driver may replace by a better one later. */
static int read_name(struct amd_reading *reading, struct berth_error *error)
{
    static const char nameless[] = "AMD Device ";
    struct optional_number id = reading->node.device_id;
    char *name = NULL;

    if (reading->path != NULL)
        name = pci_name(reading->root, reading->path);
    else if (id.known && id.value != 0 && id.value <= UINT16_MAX)
        name = pci_name_by_ids(reading->root, (uint32_t)amd_table.pci_vendor, (uint32_t)id.value);
    reading->device->name = name;
    if (name != NULL && strncmp(name, nameless, strlen(nameless)) != 0)
        return 0;
    return read_chip_name(reading, error);
}

/* Sets the UUID in the format of AMD's runtime. A unique id that partitions share identifies none
 * of them. */
static int read_unique_id(struct amd_reading *reading, struct berth_error *error)
{
    struct optional_number unique_id = reading->node.unique_id;
    char text[24];

    if (!unique_id.known || unique_id.value == 0)
        return 0;
    snprintf(text, sizeof(text), "%016" PRIx64, unique_id.value);
    if (strcmp(text, reading->key.parent) == 0)
        return 0;
    if (asprintf(&reading->device->uuid, "GPU-%s", text) < 0) {
        reading->device->uuid = NULL;
        return error_set_memory(error);
    }
    return 0;
}

/* An APU has no memory of its own, or a part of the machine's memory is reserved for it. Only an
 * APU has a sensor for the voltage of its north bridge. */
static enum device_kind kind_of(const struct amd_reading *reading, const struct kfd_memory *memory)
{
    static const char *const sensors[] = {"amdgpu", NULL};

    if (kfd_has_cpus(&reading->node) ||
        (reading->path != NULL && hwmon_has(reading->root, reading->path, sensors, "in1_label")))
        return DEVICE_KIND_INTEGRATED;
    if (!memory->is_listed)
        return DEVICE_KIND_UNKNOWN;
    return memory->total.known ? DEVICE_KIND_DISCRETE : DEVICE_KIND_INTEGRATED;
}

static void read_memory(struct amd_reading *reading)
{
    struct device *device = reading->device;
    struct kfd_memory memory = {0};

    if (reading->key.has_node)
        kfd_read_memory(reading->root, reading->key.node, !device->asleep, &memory);
    device->memory_total = memory.total;
    if (memory.total.known && memory.used.known && memory.used.value <= memory.total.value &&
        memory.total.value <= INT64_MAX)
        device->load.memory_free = load_figure_sampled(
            (int64_t)(memory.total.value - memory.used.value), clock_read(CLOCK_REALTIME));
    device->kind = kind_of(reading, &memory);
}

static int read_locality(struct amd_reading *reading, struct berth_error *error)
{
    struct device *device = reading->device;
    struct sysroot_value cpus;

    if (reading->path != NULL && locality_read(reading->root, reading->path, device, error) < 0)
        return BERTH_ERROR_MEMORY;
    if (!device->numa.known && reading->key.has_node)
        device->numa = kfd_numa(reading->root, &reading->node);
    if (device->cpus != NULL || !device->numa.known ||
        sysroot_read(reading->root, &cpus, "/sys/devices/system/node/node%" PRIu64 "/cpulist",
                     device->numa.value) < 0)
        return 0;
    return locality_parse_cpus(cpus.text, &device->cpus, error);
}

/* Returns the directory of the device with the node's render node; a partition has its own. NULL if
 * unknown or if memory ran out. The caller frees it. */
static char *render_path(const struct amd_reading *reading)
{
    struct optional_number minor = reading->node.drm_render_minor;
    char *path = NULL;

    if (minor.known && minor.value != 0)
        path =
            sysroot_resolve(reading->root, "/sys/class/drm/renderD%" PRIu64 "/device", minor.value);
    if (path == NULL && reading->path != NULL && reading->key.parent[0] == '\0')
        path = strdup(reading->path);
    return path;
}

static int add_device_file(const struct amd_reading *reading, const char *file,
                           struct berth_error *error)
{
    struct string_list *nodes = &reading->device->nodes;

    for (size_t i = 0; i < nodes->count; i++)
        if (strcmp(nodes->items[i], file) == 0)
            return 0;
    if (sysroot_has(reading->root, "%s", file) && string_list_append(nodes, file) < 0)
        return error_set_memory(error);
    return 0;
}

static int read_device_files(struct amd_reading *reading, struct berth_error *error)
{
    struct optional_number minor = reading->node.drm_render_minor;
    char *path = render_path(reading);
    struct drm_device drm = {0};
    char render[48];
    int code = 0;

    if (reading->key.has_node)
        code = add_device_file(reading, "/dev/kfd", error);
    if (code == 0 && path != NULL)
        code = drm_device_at(reading->root, path, &drm, error);
    if (code == 0 && path != NULL)
        code = drm_nodes(reading->root, &drm, &reading->device->nodes, error);
    if (code == 0 && minor.known && minor.value != 0) {
        snprintf(render, sizeof(render), "/dev/dri/renderD%" PRIu64, minor.value);
        code = add_device_file(reading, render, error);
    }
    drm_device_finish(&drm);
    free(path);
    return code;
}

static int read_facts(struct amd_reading *reading, struct berth_error *error)
{
    struct device *device = reading->device;
    int code;

    device->pci = reading->key.pci;
    device->asleep = reading->path != NULL && locality_is_asleep(reading->root, reading->path);
    device->cap = capability_of(reading->node.gfx_target_version);
    if (reading->key.parent[0] != '\0' && (device->parent = strdup(reading->key.parent)) == NULL)
        return error_set_memory(error);
    read_memory(reading);
    code = read_unique_id(reading, error);
    if (code == 0)
        code = read_name(reading, error);
    if (code == 0)
        code = read_locality(reading, error);
    if (code == 0)
        code = read_device_files(reading, error);
    if (code == 0 && !device->asleep)
        code = amd_read_driver(reading->root, reading->path, &reading->key, device, error);
    return code;
}

int amd_read(struct vendor_context *context, const struct device_finding *wanted,
             struct findings *findings, struct berth_error *error)
{
    struct amd_reading reading = {.root = context->root, .path = wanted->path};
    struct device_finding *found;
    int code = amd_key_parse(wanted->key, &reading.key, error);

    if (code == 0 && reading.key.has_node)
        code = read_node(&reading, error);
    if (code < 0)
        return code;
    found = finding_list_add(&findings->found, wanted->device->id);
    if (found == NULL)
        return error_set_memory(error);
    found->key = strdup(wanted->key);
    found->path = wanted->path == NULL ? NULL : strdup(wanted->path);
    if (found->key == NULL || (wanted->path != NULL && found->path == NULL))
        return error_set_memory(error);
    reading.device = found->device;
    return read_facts(&reading, error);
}
