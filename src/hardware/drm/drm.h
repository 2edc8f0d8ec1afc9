/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's DRM devices, of all vendors.
 */
#ifndef HARDWARE_DRM_DRM_H
#define HARDWARE_DRM_DRM_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/vector.h"
#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"
#include "model/machine/pci.h"

struct drm_device {
    char *path;   /* the device's resolved directory: /sys/devices/pci0000:00/0000:00:02.0 */
    char *driver; /* i915; NULL: unknown */
    char *card;   /* card0; NULL: none */
    char *render; /* renderD128; NULL: none */
    struct pci_address pci;
};

struct drm_list {
    VECTOR_OF(struct drm_device);
};

/* Adds the devices that the vendor's table claims: by driver, or by PCI vendor id if the driver is
 * unknown. The table of VENDOR_DRI gets the devices that no other table claims. The order is by PCI
 * address; devices without an address follow, by path.
 *
 * A device without a render node can only show pictures and is skipped. On a recorded machine it
 * still counts for its own vendor, because recordings may be incomplete. The partitions of amdgpu
 * (platform devices amdgpu_xcp_*) are skipped, because their GPU's driver lists them.
 *
 * Reads only names and links if they suffice (a recorded machine may lack them). Fails with
 * BERTH_ERROR_IO, _PERMISSION or _MEMORY. */
int drm_list_claimed(const struct sysroot *root, const struct vendor_table *table,
                     struct drm_list *ret_list, struct berth_error *error);
void drm_list_finish(struct drm_list *list);

/* Finds the card and the render node of the device in this directory, like drm_list_claimed() for
 * one path. Missing names are NULL. The caller finishes *ret_device. Fails with BERTH_ERROR_MEMORY.
 */
int drm_device_at(const struct sysroot *root, const char *path, struct drm_device *ret_device,
                  struct berth_error *error);
void drm_device_finish(struct drm_device *device);

/* Adds the device files that exist: /dev/dri/renderD128, /dev/dri/card0. Fails with
 * BERTH_ERROR_MEMORY. */
int drm_nodes(const struct sysroot *root, const struct drm_device *drm,
              struct string_list *ret_nodes, struct berth_error *error);

/* Returns whether programs here can open the device. In a container, sysfs shows all devices of the
 * machine, but /dev has only the container's. Always true on a recorded machine, which has no /dev.
 */
bool drm_is_reachable(const struct sysroot *root, const struct drm_device *drm);

#endif
