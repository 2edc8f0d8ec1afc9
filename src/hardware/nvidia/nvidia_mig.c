/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the instances of a GPU in MIG mode.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "hardware/nvidia/nvidia.h"
#include "hardware/sysfs/locality.h"

/* More instances than any GPU has; today's maximum is 7. */
#define INSTANCES_MAX 64

/* Returns the minor number of the capability's device file, which controls the access to an
 * instance, from a line "DeviceFileMinor: 30". */
static struct optional_number capability_minor(const struct sysroot_value *file)
{
    static const char key[] = "DeviceFileMinor:";
    const char *place = strstr(file->text, key);
    struct optional_number minor = {0};
    char digits[16] = "";
    size_t length;

    if (place == NULL)
        return minor;
    place += strlen(key);
    place += strspn(place, " \t");
    length = strspn(place, "0123456789");
    if (length < sizeof(digits))
        memcpy(digits, place, length);
    minor.known = quantity_parse_number(digits, 0, UINT32_MAX, &minor.value, NULL) == 0;
    return minor;
}

/* Adds the capability's device file if it exists. `below` is the instance's path in the driver's
 * tree: "gi1/ci0/". */
static int add_capability(const struct sysroot *root, uint64_t gpu_minor, const char *below,
                          struct string_list *nodes)
{
    struct sysroot_value file;
    struct optional_number minor;
    char node[64];

    sysroot_read(root, &file, "/proc/driver/nvidia/capabilities/gpu%u/mig/%saccess",
                 (unsigned)gpu_minor, below);
    minor = capability_minor(&file);
    if (!minor.known)
        return 0;
    snprintf(node, sizeof(node), "/dev/nvidia-caps/nvidia-cap%u", (unsigned)minor.value);
    return sysroot_has(root, "%s", node) ? string_list_append(nodes, node) : 0;
}

static int add_nodes(const struct nvidia_query *query, const struct nvidia_use *instance,
                     struct berth_error *error)
{
    struct device *device = query->device;
    char gpu[32];
    char compute[64];
    int code = nvidia_nodes(query->root, device->minor, &device->nodes, error);

    if (code < 0 || !device->minor.known || instance->gpu_instance == NVML_NO_INSTANCE)
        return code;
    snprintf(gpu, sizeof(gpu), "gi%u/", instance->gpu_instance);
    snprintf(compute, sizeof(compute), "%sci%u/", gpu, instance->compute_instance);
    code = add_capability(query->root, device->minor.value, gpu, &device->nodes);
    if (code == 0 && instance->compute_instance != NVML_NO_INSTANCE)
        code = add_capability(query->root, device->minor.value, compute, &device->nodes);
    return code < 0 ? error_set_memory(error) : 0;
}

/* Adds the instance's processes: those that NVML lists for it, or those of the GPU that are on it.
 */
static int add_processes(struct nvidia_query *query, const struct nvidia_use *instance,
                         const struct nvidia_use_list *of_gpu, struct berth_error *error)
{
    struct nvidia_use_list own = {0};
    int code = nvidia_uses_read(query, &own, error);

    if (code == 0)
        code = own.count > 0 || instance->gpu_instance == NVML_NO_INSTANCE
                   ? nvidia_uses_add(&own, NULL, query->device, error)
                   : nvidia_uses_add(of_gpu, instance, query->device, error);
    vector_finish(&own);
    return code;
}

/* Copies the facts that an instance shares with its GPU. */
static int inherit_from_gpu(const struct device *gpu, struct device *device,
                            struct berth_error *error)
{
    char *const copies[] = {
        strdup(device_id_format(gpu->id).text),
        gpu->health_reason == NULL ? NULL : strdup(gpu->health_reason),
        gpu->name == NULL ? NULL : strdup(gpu->name),
    };

    device->parent = copies[0];
    device->health_reason = copies[1];
    device->name = copies[2]; /* NVML may replace it by a better one */
    device->pci = gpu->pci;
    device->minor = gpu->minor;
    device->cap = gpu->cap;
    device->kind = gpu->kind;
    device->health = gpu->health;
    return copies[0] == NULL || (gpu->health_reason != NULL && copies[1] == NULL) ||
                   (gpu->name != NULL && copies[2] == NULL)
               ? error_set_memory(error)
               : 0;
}

static int set_sick(struct device *device, struct berth_error *error)
{
    char *reason = strdup("its GPU is lost, or needs a reset");

    if (reason == NULL)
        return error_set_memory(error);
    free(device->health_reason);
    device->health_reason = reason;
    device->health = HEALTH_SICK;
    return 0;
}

static int read_instance(struct nvidia_query *query, const struct device *gpu, const char *path,
                         const struct nvidia_use_list *of_gpu, struct berth_error *error)
{
    struct nvidia_use instance = {.gpu_instance = NVML_NO_INSTANCE,
                                  .compute_instance = NVML_NO_INSTANCE};
    unsigned id = 0;
    int code = inherit_from_gpu(gpu, query->device, error);

    if (nvidia_call(query, gpu_instance, &id))
        instance.gpu_instance = id;
    if (nvidia_call(query, compute_instance, &id))
        instance.compute_instance = id;
    if (code == 0)
        code = nvidia_read_identity(query, error);
    if (code == 0)
        code = add_nodes(query, &instance, error);
    if (code == 0)
        code = add_processes(query, &instance, of_gpu, error);
    /* Where the library does not list them for an instance, it lists them for the GPU. */
    query->device->hides_processes &= gpu->hides_processes;
    if (code == 0 && path != NULL)
        code = locality_read(query->root, path, query->device, error);
    if (code == 0 && query->lost != 0)
        code = set_sick(query->device, error);
    return code;
}

static int add_instance(const struct nvidia_query *parent, nvml_device handle, unsigned number,
                        const char *path, const struct nvidia_use_list *of_gpu,
                        struct findings *findings, struct berth_error *error)
{
    struct device_id id = {VENDOR_NVIDIA, parent->device->id.index, number};
    struct device_finding *found = finding_list_add(&findings->found, id);
    struct nvidia_query query = *parent;

    if (found == NULL)
        return error_set_memory(error);
    found->path = path == NULL ? NULL : strdup(path);
    if (path != NULL && found->path == NULL)
        return error_set_memory(error);
    query.handle = handle;
    query.device = found->device;
    query.lost = 0;
    return read_instance(&query, parent->device, path, of_gpu, error);
}

int nvidia_read_instances(struct nvidia_query *parent, const char *path,
                          const struct nvidia_use_list *uses, struct findings *findings,
                          struct berth_error *error)
{
    const struct nvml *nvml = parent->nvml;
    unsigned max = 0;
    int code = 0;

    if (nvml->mig_by_index == NULL || !nvidia_call(parent, mig_max, &max))
        return 0;
    for (unsigned i = 0; i < max && i < INSTANCES_MAX && code == 0; i++) {
        nvml_device handle = NULL;

        /* There may be gaps between the instances. */
        if (nvml->mig_by_index(parent->handle, i, &handle) == NVML_SUCCESS)
            code = add_instance(parent, handle, i, path, uses, findings, error);
    }
    return code;
}
