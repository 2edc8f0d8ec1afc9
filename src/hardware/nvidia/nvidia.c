/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/nvidia/nvidia.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "hardware/sysfs/locality.h"

/* More GPUs than any machine has. A larger count from the library is wrong. */
#define GPUS_MAX 256

/* Adds a GPU. Copies `path`, which may be NULL. Returns NULL if memory ran out. */
static struct device_finding *add_found(struct findings *findings, size_t index,
                                        struct pci_address pci, const char *path,
                                        struct berth_error *error)
{
    struct device_id id = {VENDOR_NVIDIA, (uint32_t)index, DEVICE_NO_MIG};
    struct device_finding *found = finding_list_add(&findings->found, id);

    if (found != NULL && path != NULL)
        found->path = strdup(path);
    if (found == NULL || (path != NULL && found->path == NULL)) {
        error_set_memory(error);
        return NULL;
    }
    found->device->pci = pci;
    return found;
}

/* The key is the PCI address, because the index changes when another GPU disappears. The index is
 * the key only if NVML reported no address. */
static int set_key(struct device_finding *found, bool is_by_pci, struct berth_error *error)
{
    int length = is_by_pci ? asprintf(&found->key, "pci %s", pci_format(found->device->pci).text)
                           : asprintf(&found->key, "index %u", (unsigned)found->device->id.index);

    if (length < 0) {
        found->key = NULL;
        return error_set_memory(error);
    }
    return 0;
}

int nvidia_handle(const struct nvml *nvml, const struct device_finding *wanted,
                  nvml_device *ret_handle, struct berth_error *error)
{
    const char *key = wanted->key == NULL ? "" : wanted->key;
    bool is_by_pci = strncmp(key, "pci ", 4) == 0 && nvml->by_pci != NULL;
    nvml_device handle = NULL;
    int number = is_by_pci ? nvml->by_pci(key + 4, &handle)
                           : nvml->by_index(wanted->device->id.index, &handle);

    if (number != NVML_SUCCESS)
        return nvidia_error(nvml, number, error, "cannot open GPU %s", key);
    *ret_handle = handle;
    return 0;
}

static struct pci_address read_pci(const struct nvml *nvml, nvml_device handle)
{
    struct nvml_pci_info info = {0};

    if (nvml->pci == NULL || nvml->pci(handle, &info) != NVML_SUCCESS)
        return (struct pci_address){0};
    return nvidia_pci(&info);
}

/* Adds the GPU with this index, even if NVML cannot reach it. Reading it will report the reason. */
static int list_index(const struct vendor_context *context, const struct nvml *nvml, unsigned index,
                      struct findings *findings, struct berth_error *error)
{
    nvml_device handle = NULL;
    struct pci_address pci = {0};
    struct device_finding *found = NULL;
    char *path;

    if (nvml->by_index(index, &handle) == NVML_SUCCESS)
        pci = read_pci(nvml, handle);
    path = pci.known ? locality_pci_path(context->root, pci) : NULL;
    found = add_found(findings, index, pci, path, error);
    free(path);
    return found == NULL ? BERTH_ERROR_MEMORY : set_key(found, pci.known, error);
}

static bool has_address(const struct findings *findings, struct pci_address pci)
{
    const struct device_finding *found;

    vector_for_each (found, &findings->found) {
        if (found->device->pci.known && pci_compare(found->device->pci, pci) == 0)
            return true;
    }
    return false;
}

/* Returns the only listed GPU without an address; NULL if there are none or several. */
static struct device_finding *find_only_unplaced(const struct findings *findings)
{
    struct device_finding *found;
    struct device_finding *unplaced = NULL;

    vector_for_each (found, &findings->found) {
        if (found->device->pci.known)
            continue;
        if (unplaced != NULL)
            return NULL;
        unplaced = found;
    }
    return unplaced;
}

/* Sets the address of a GPU that NVML cannot reach: if exactly one of the kernel's GPUs is not
 * listed, it must be that one. */
static int locate_unreachable(const struct nvidia_gpu_list *gpus, struct findings *findings,
                              struct berth_error *error)
{
    struct device_finding *unplaced = find_only_unplaced(findings);
    const struct nvidia_gpu *gpu;
    const struct nvidia_gpu *left = NULL;

    if (unplaced == NULL)
        return 0;
    vector_for_each (gpu, gpus) {
        if (has_address(findings, gpu->pci))
            continue;
        if (left != NULL)
            return 0;
        left = gpu;
    }
    if (left == NULL)
        return 0;
    unplaced->path = strdup(left->path);
    if (unplaced->path == NULL)
        return error_set_memory(error);
    unplaced->device->pci = left->pci;
    return 0;
}

static int list_indexes(const struct vendor_context *context, const struct nvml *nvml,
                        const struct nvidia_gpu_list *gpus, struct findings *findings,
                        struct berth_error *error)
{
    unsigned count = 0;
    int number = nvml->count(&count);
    int code = 0;

    if (number != NVML_SUCCESS)
        return nvidia_error(nvml, number, error, "cannot count the GPUs");
    if (count > GPUS_MAX) {
        if (machine_report_add_problem(&findings->problems, "nvidia",
                                       "NVML: expected at most %d GPUs, got a count of %u",
                                       GPUS_MAX, count) < 0)
            return error_set_memory(error);
        /* The kernel's number of GPUs is more reliable then. */
        count = gpus->count > 0 && gpus->count < GPUS_MAX ? (unsigned)gpus->count : GPUS_MAX;
    }
    for (unsigned i = 0; i < count && code == 0; i++)
        code = list_index(context, nvml, i, findings, error);
    return code < 0 ? code : locate_unreachable(gpus, findings, error);
}

/* Returns NVML's index of the GPU, or its position among the driver's GPUs, which is how NVML
 * counts. */
static size_t find_index(const struct nvml *nvml, const struct nvidia_gpu *gpu, size_t place)
{
    nvml_device handle = NULL;
    unsigned index = 0;

    if (nvml == NULL || gpu->asleep || nvml->by_pci == NULL || nvml->index == NULL ||
        nvml->by_pci(pci_format(gpu->pci).text, &handle) != NVML_SUCCESS ||
        nvml->index(handle, &index) != NVML_SUCCESS || index >= GPUS_MAX)
        return place;
    return index;
}

static bool has_index(const struct findings *findings, size_t index)
{
    const struct device_finding *found;

    vector_for_each (found, &findings->found) {
        if (found->device->id.index == index)
            return true;
    }
    return false;
}

/* Lists the GPUs if some of them sleep. Does not query NVML by index, which would wake the GPUs
 * before that index. Without NVML, lists only sleeping GPUs. */
static int list_some_asleep(const struct nvml *nvml, const struct nvidia_gpu_list *gpus,
                            struct findings *findings, struct berth_error *error)
{
    int code = 0;

    for (size_t i = 0; i < gpus->count && i < GPUS_MAX && code == 0; i++) {
        const struct nvidia_gpu *gpu = &gpus->items[i];
        size_t index = find_index(nvml, gpu, i);
        struct device_finding *found = NULL;

        if (!gpu->asleep && nvml == NULL)
            continue;
        /* An index that differs from NVML's is better than two GPUs with one id. */
        while (has_index(findings, index))
            index++;
        found = add_found(findings, index, gpu->pci, gpu->path, error);
        if (found == NULL)
            return BERTH_ERROR_MEMORY;
        found->device->asleep = gpu->asleep;
        code = set_key(found, true, error);
    }
    return code;
}

/* Reports a problem if there are GPUs that cannot be read. A machine without NVIDIA GPUs is
 * normal. */
static int explain_absence(const struct nvidia_gpu_list *gpus, const char *why,
                           struct findings *findings, struct berth_error *error)
{
    size_t awake = gpus->count - nvidia_gpu_list_asleep(gpus);

    if (awake > 0 &&
        machine_report_add_problem(&findings->problems, "nvidia",
                                   "cannot read %zu GPU%s of the kernel's nvidia driver: %s", awake,
                                   awake == 1 ? "" : "s", why) < 0)
        return error_set_memory(error);
    return 0;
}

/* Starts NVML to list these GPUs. *ret_nvml stays NULL if NVML is not needed or not available. */
static int start_list(struct vendor_context *context, const struct nvidia_gpu_list *gpus,
                      const struct nvml **ret_nvml, struct findings *findings,
                      struct berth_error *error)
{
    struct berth_error why = BERTH_ERROR_INIT;
    int code;

    /* NVML is not needed if all GPUs sleep. */
    if (gpus->count > 0 && nvidia_gpu_list_asleep(gpus) == gpus->count)
        return 0;
    code = nvidia_begin(context, gpus, ret_nvml, &why);
    if (code == BERTH_ERROR_NO_DEVICE)
        return 0;
    if (code == BERTH_ERROR_NOT_FOUND)
        return explain_absence(gpus, why.message, findings, error);
    return code < 0 ? error_set(error, code, "%s", why.message) : 0;
}

static int list_gpus(struct vendor_context *context, const struct nvidia_gpu_list *gpus,
                     struct findings *findings, struct berth_error *error)
{
    const struct nvml *nvml = NULL;
    int code = start_list(context, gpus, &nvml, findings, error);

    if (code < 0)
        return code;
    if (nvidia_gpu_list_asleep(gpus) > 0)
        code = list_some_asleep(nvml, gpus, findings, error);
    else if (nvml != NULL)
        code = list_indexes(context, nvml, gpus, findings, error);
    nvidia_end(context);
    return code;
}

static int list_devices(struct vendor_context *context, const struct finding_list *candidates,
                        struct findings *findings, struct berth_error *error)
{
    struct nvidia_gpu_list gpus;
    int code = nvidia_gpu_list_read(context->root, &gpus, error);

    (void)candidates;
    if (code < 0)
        return code;
    code = list_gpus(context, &gpus, findings, error);
    nvidia_gpu_list_finish(&gpus);
    return code;
}

/* Returns whether the GPU is in MIG mode, in which programs use its instances. */
static bool is_partitioned(struct nvidia_query *query)
{
    unsigned current = 0;
    unsigned pending = 0;

    return nvidia_call(query, mig_mode, &current, &pending) && current == NVML_FEATURE_ENABLED;
}

/* Sets the address that NVML reports. The listing lacks it if NVML could not reach the GPU then. */
static void update_address(const struct nvidia_query *query, struct device_finding *found)
{
    struct pci_address pci = read_pci(query->nvml, query->handle);

    if (!pci.known || (found->device->pci.known && pci_compare(found->device->pci, pci) == 0))
        return;
    found->device->pci = pci;
    free(found->path);
    found->path = locality_pci_path(query->root, pci);
}

static int read_awake(const struct vendor_context *context, const struct nvml *nvml,
                      const struct device_finding *wanted, struct device_finding *found,
                      struct findings *findings, struct berth_error *error)
{
    struct nvidia_query query = {.root = context->root, .nvml = nvml, .device = found->device};
    struct nvidia_use_list uses = {0};
    int code = nvidia_handle(nvml, wanted, &query.handle, error);
    const char *path;

    if (code < 0)
        return code;
    update_address(&query, found);
    path = found->path; /* the list may move, the path does not */
    code = nvidia_read_gpu(&query, path, error);
    if (code == 0)
        code = nvidia_uses_read(&query, &uses, error);
    if (code == 0)
        code = nvidia_uses_add(&uses, NULL, query.device, error);
    query.device->partitioned = is_partitioned(&query);
    if (code == 0)
        code = nvidia_read_health(&query, error);
    if (code == 0 && query.device->partitioned)
        code = nvidia_read_instances(&query, path, &uses, findings, error);
    vector_finish(&uses);
    return code;
}

static int read_device(struct vendor_context *context, const struct device_finding *wanted,
                       struct findings *findings, struct berth_error *error)
{
    struct device_finding *found =
        add_found(findings, wanted->device->id.index, wanted->device->pci, wanted->path, error);
    const struct nvml *nvml = NULL;
    int code;

    if (found == NULL)
        return BERTH_ERROR_MEMORY;
    if (wanted->key != NULL && (found->key = strdup(wanted->key)) == NULL)
        return error_set_memory(error);
    if (wanted->path != NULL && locality_is_asleep(context->root, wanted->path))
        return nvidia_read_asleep(context->root, wanted->path, found->device, error);
    code = nvidia_begin(context, NULL, &nvml, error);
    if (code == 0)
        code = read_awake(context, nvml, wanted, found, findings, error);
    nvidia_end(context);
    return code;
}

/* The driver's name in sysfs, and the name of its DRM part if there is no PCI device below it.
 * Devices of other drivers, such as nouveau, do not belong to this vendor. NVML does not know
 * devices without a driver, so there is no PCI vendor id. */
static const char *const drivers[] = {"nvidia", "nvidia-drm", NULL};

const struct vendor_table nvidia_table = {
    .vendor = VENDOR_NVIDIA,
    .drivers = drivers,
    .pci_vendor = 0,
    .timeout = DURATION_SECOND / 2,
    .lane = LANE_NVIDIA,
    .list = list_devices,
    .read = read_device,
    .links = nvidia_links,
    .close = nvidia_close,
};
