/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's graphics devices, whoever made them.
 */
#ifndef HARDWARE_DRM_DRM_H
#define HARDWARE_DRM_DRM_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/vector.h"
#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"
#include "model/pci.h"

struct drm_device {
    char *path;   /* the device's directory, resolved: /sys/devices/pci0000:00/0000:00:02.0 */
    char *driver; /* i915; NULL: unknown */
    char *card;   /* card0; NULL: none */
    char *render; /* renderD128; NULL: none */
    struct pci_address pci;
};

struct drm_list {
    VECTOR_OF(struct drm_device);
};

/* Adds the devices that the vendor's table claims: by driver, or where no driver is known by PCI
 * vendor id; the table of VENDOR_DRI gets those that no other claims. In order of PCI address,
 * those without one after them by path. Without a render node a device only shows a picture; in a
 * recorded machine a vendor's own counts nevertheless, since recordings leave things out. The
 * partitions of amdgpu (platform devices amdgpu_xcp_*) are nobody's: their GPU tells of them.
 *
 * Reads names and links only, wherever they suffice (a recorded machine may lack them). Fails with
 * BERTH_ERROR_IO, _PERMISSION or _MEMORY. */
int drm_list_claimed(const struct sysroot *root, const struct vendor_table *table,
                     struct drm_list *ret_list, struct berth_error *error);
void drm_list_finish(struct drm_list *list);

/* The card and render node whose device has this directory: what drm_list_claimed says of it, for a
 * path that is known. Names are NULL when there is none. The caller finishes it. Fails with
 * BERTH_ERROR_MEMORY. */
int drm_device_at(const struct sysroot *root, const char *path, struct drm_device *ret_device,
                  struct berth_error *error);
void drm_device_finish(struct drm_device *device);

/* Adds the device files that are there: /dev/dri/renderD128, /dev/dri/card0. Fails with
 * BERTH_ERROR_MEMORY. */
int drm_nodes(const struct sysroot *root, const struct drm_device *drm,
              struct string_list *ret_nodes, struct berth_error *error);

/* Whether programs here can get at the device: in a container sysfs shows all devices of the
 * machine, but /dev only those that it was given. True in a recorded machine, which has no /dev. */
bool drm_is_reachable(const struct sysroot *root, const struct drm_device *drm);

#endif
