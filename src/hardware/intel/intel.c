/* SPDX-License-Identifier: Apache-2.0
 *
 * Intel's GPUs. Facts come from the files of i915 and xe in sysfs; the memory also comes from
 * ioctls. A GPU with several tiles is one device.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "hardware/drm/drm_gpu.h"
#include "hardware/intel/energy.h"
#include "hardware/intel/intel_memory.h"
#include "hardware/sysfs/hwmon.h"
#include "hardware/sysfs/pci_names.h"

#define HERTZ_PER_MEGAHERTZ 1000000
/* More than any GPU has. A larger value is wrong. */
#define MEGAHERTZ_MAX 100000

static int list_devices(struct vendor_context *context, const struct finding_list *candidates,
                        struct findings *findings, struct berth_error *error)
{
    (void)candidates;
    return drm_gpu_list(context, &intel_table, findings, error);
}

/* Adds up the memory of all tiles, which xe shows separately. */
static struct optional_number sum_tiles_memory(const struct sysroot *root, const char *path)
{
    struct optional_number total = {0};

    for (unsigned tile = 0; tile < DEVICE_TILES_MAX; tile++) {
        struct optional_number size =
            sysroot_number(root, "%s/tile%u/physical_vram_size_bytes", path, tile);

        if (!size.known)
            break;
        if (size.value > INT64_MAX - total.value)
            return (struct optional_number){0};
        total = optional_number_of(total.value + size.value);
    }
    return total;
}

/* Returns whether the GPU is a Ponte Vecchio: i915 gives it one GT per tile. Other GPUs have two
 * GTs on one tile; the second is for media. */
static bool has_gt_of_each_tile(const struct sysroot *root, const char *path)
{
    static const uint16_t others[] = {0x0be0, 0x0be1, 0x0be5};
    struct optional_number id = sysroot_number(root, "%s/device", path);

    if (!id.known)
        return false;
    for (size_t i = 0; i < COUNT(others); i++) {
        if (id.value == others[i])
            return true;
    }
    return id.value >= 0x0bd0 && id.value <= 0x0bdb;
}

static struct optional_number count_tiles(const struct sysroot *root, const struct drm_device *drm)
{
    unsigned count = 0;

    if (drm->driver != NULL && strcmp(drm->driver, "xe") == 0) {
        while (count < DEVICE_TILES_MAX && sysroot_has(root, "%s/tile%u", drm->path, count))
            count++;
    } else if (drm->driver != NULL && strcmp(drm->driver, "i915") == 0) {
        if (!has_gt_of_each_tile(root, drm->path))
            return optional_number_of(1);
        while (drm->card != NULL && count < DEVICE_TILES_MAX &&
               sysroot_has(root, "%s/drm/%s/gt/gt%u", drm->path, drm->card, count))
            count++;
    }
    return (struct optional_number){.known = count > 0, .value = count};
}

/* Reads the local memory: from files that some driver versions have, or from the driver. An
 * integrated GPU has none; its memory is unknown, because it uses the machine's. */
static void read_memory(const struct sysroot *root, const struct drm_device *drm,
                        struct device *device)
{
    struct intel_memory memory = {.total = sum_tiles_memory(root, drm->path)};

    if (!memory.total.known && drm->card != NULL) {
        memory.total = sysroot_number(root, "%s/drm/%s/lmem_total_bytes", drm->path, drm->card);
        memory.free_now = sysroot_number(root, "%s/drm/%s/lmem_avail_bytes", drm->path, drm->card);
    }
    if (!memory.total.known)
        memory = intel_memory_read(root, drm);
    if (memory.answered && !memory.total.known)
        device->kind = DEVICE_KIND_INTEGRATED;
    if (!memory.total.known || memory.total.value == 0 || memory.total.value > INT64_MAX)
        return;
    device->kind = DEVICE_KIND_DISCRETE;
    device->memory_total = memory.total;
    if (memory.free_now.known && memory.free_now.value <= memory.total.value)
        device->load.memory_free =
            load_figure_sampled((int64_t)memory.free_now.value, clock_read(CLOCK_REALTIME));
}

/* Decides by the address, for a driver that does not report the kind. Integrated GPUs are device 2
 * on the first bus of every machine, and a GPU behind a bridge is a card. In a virtual machine, a
 * card may be anywhere on the first bus. */
static enum device_kind kind_by_address(struct pci_address pci)
{
    if (!pci.known)
        return DEVICE_KIND_UNKNOWN;
    if (pci.bus != 0)
        return DEVICE_KIND_DISCRETE;
    return pci.device == 2 ? DEVICE_KIND_INTEGRATED : DEVICE_KIND_UNKNOWN;
}

/* Reads the actual frequency of the first engine: from xe, from i915 with a directory for each
 * engine, or from older i915. */
static void read_frequency(const struct sysroot *root, const struct drm_device *drm,
                           struct load *load)
{
    struct optional_number megahertz =
        sysroot_number(root, "%s/tile0/gt0/freq0/act_freq", drm->path);

    if (!megahertz.known && drm->card != NULL)
        megahertz = sysroot_number(root, "%s/drm/%s/gt/gt0/rps_act_freq_mhz", drm->path, drm->card);
    if (!megahertz.known && drm->card != NULL)
        megahertz = sysroot_number(root, "%s/drm/%s/gt_act_freq_mhz", drm->path, drm->card);
    if (megahertz.known && megahertz.value <= MEGAHERTZ_MAX)
        load->frequency = load_figure_sampled((int64_t)megahertz.value * HERTZ_PER_MEGAHERTZ,
                                              clock_read(CLOCK_REALTIME));
}

/* Reads the sensors. Few GPUs report their power, but nearly all report the energy used so far. */
static void read_sensors(struct vendor_context *context, const char *path, struct load *load)
{
    static const char *const sensors[] = {"i915", "xe", NULL};
    static const char *const labels[] = {"card", "pkg", NULL};
    struct energy *energy = context->own;
    struct optional_number used;

    hwmon_read(context->root, path, sensors, labels, load);
    if (load->power.known)
        return;
    used = hwmon_energy(context->root, path, sensors, labels);
    if (used.known)
        load->power = energy_power(&energy, path, used.value, clock_now());
    context->own = energy;
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
    device->name = pci_name(root, drm.path);
    device->kind = kind_by_address(device->pci);
    device->tiles = count_tiles(root, &drm);
    if (!device->asleep) {
        read_memory(root, &drm, device);
        read_frequency(root, &drm, &device->load);
        read_sensors(context, drm.path, &device->load);
        device->health = HEALTH_OK; /* neither driver reports health */
    }
    drm_device_finish(&drm);
    return 0;
}

static void close_context(struct vendor_context *context)
{
    energy_destroy(context->own);
    context->own = NULL;
}

static const char *const drivers[] = {"i915", "xe", NULL};

const struct vendor_table intel_table = {
    .vendor = VENDOR_INTEL,
    .drivers = drivers,
    .pci_vendor = 0x8086,
    .timeout = DRM_GPU_TIMEOUT,
    .lane = LANE_SYSFS,
    .list = list_devices,
    .read = read_device,
    .close = close_context,
};
