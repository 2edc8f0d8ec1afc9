/* SPDX-License-Identifier: Apache-2.0
 *
 * All other GPUs with a render node: cards whose driver no vendor's runtime supports (nouveau,
 * radeon), virtual cards (virtio, vgem), and GPUs of small machines (panfrost, panthor, v3d, msm).
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "hardware/drm/drm_gpu.h"
#include "hardware/sysfs/hwmon.h"
#include "hardware/sysfs/locality.h"
#include "hardware/sysfs/pci_names.h"

/* More than any GPU's frequency. A larger value is wrong. */
#define HERTZ_MAX UINT64_C(100000000000)

static int list_devices(struct vendor_context *context, const struct finding_list *candidates,
                        struct findings *findings, struct berth_error *error)
{
    (void)candidates;
    return drm_gpu_list(context, &dri_table, findings, error);
}

/* Returns the driver's name, or the device's name on a bus without drivers. */
static const char *driver_name(const struct drm_device *drm)
{
    const char *name = strrchr(drm->path, '/');

    if (drm->driver != NULL && strcmp(drm->driver, "faux_driver") != 0)
        return drm->driver;
    return name == NULL ? drm->path : name + 1;
}

/* Returns "AMD Radeon HD 7970" from pci.ids, "panfrost arm,mali-t860" from the device tree, or
 * "virtio_gpu". NULL if memory ran out. */
static char *name_of(const struct sysroot *root, const struct drm_device *drm)
{
    struct text name = {0};
    size_t length = 0;
    char *compatible;

    /* The files of a PCI device's child do not name it: virtio has its own device numbers. */
    if (locality_pci_of(drm->path, &length).known && length == strlen(drm->path)) {
        char *by_ids = pci_name(root, drm->path);

        if (by_ids != NULL)
            return by_ids;
    }
    compatible = drm_gpu_compatible(root, drm->path, "arm,", true);
    text_append(&name, driver_name(drm));
    if (compatible != NULL)
        text_append_format(&name, " %s", compatible);
    free(compatible);
    return text_detach(&name);
}

/* Reads the device's own memory if the driver shows it as amdgpu does. */
static void read_memory(const struct sysroot *root, const char *path, struct device *device)
{
    struct optional_number total = sysroot_number(root, "%s/mem_info_vram_total", path);
    struct optional_number used = sysroot_number(root, "%s/mem_info_vram_used", path);

    if (!total.known || total.value == 0 || total.value > INT64_MAX)
        return;
    device->memory_total = total;
    device->kind = DEVICE_KIND_DISCRETE;
    if (used.known && used.value <= total.value)
        device->load.memory_free =
            load_figure_sampled((int64_t)(total.value - used.value), clock_read(CLOCK_REALTIME));
}

/* Reads the kernel's frequency scaling, the only source that drivers of small GPUs have. */
static void read_frequency(const struct sysroot *root, const char *path, struct load *load)
{
    struct string_list names = {0};
    struct optional_number hertz = {0};

    if (sysroot_list(root, &names, "%s/devfreq", path) == 0 && names.count > 0)
        hertz = sysroot_number(root, "%s/devfreq/%s/cur_freq", path, names.items[0]);
    if (hertz.known && hertz.value <= HERTZ_MAX)
        load->frequency = load_figure_sampled((int64_t)hertz.value, clock_read(CLOCK_REALTIME));
    string_list_finish(&names);
}

static int read_device(struct vendor_context *context, const struct device_finding *wanted,
                       struct findings *findings, struct berth_error *error)
{
    const struct sysroot *root = context->root;
    struct drm_device drm;
    struct device *device;
    int code = drm_gpu_start_read(context, wanted, findings, &device, &drm, error);

    if (code < 0)
        return code;
    device->name = name_of(root, &drm);
    /* A device in the device tree is part of the chip. */
    if (sysroot_has(root, "%s/of_node/compatible", drm.path))
        device->kind = DEVICE_KIND_INTEGRATED;
    if (!device->asleep) {
        read_memory(root, drm.path, device);
        read_frequency(root, drm.path, &device->load);
        hwmon_read(root, drm.path, NULL, NULL, &device->load);
        device->health = HEALTH_OK; /* drivers have no common way to report health */
    }
    drm_device_finish(&drm);
    return 0;
}

const struct vendor_table dri_table = {
    .vendor = VENDOR_DRI,
    .timeout = DRM_GPU_TIMEOUT,
    .lane = LANE_SYSFS,
    .list = list_devices,
    .read = read_device,
};
