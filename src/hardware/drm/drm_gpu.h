/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the vendors whose GPUs are known only by their DRM device.
 */
#ifndef HARDWARE_DRM_DRM_GPU_H
#define HARDWARE_DRM_DRM_GPU_H

#include <berth/error.h>

#include "base/text/quantity.h"
#include "hardware/drm/drm.h"
#include "hardware/findings.h"
#include "hardware/vendors.h"

/* The timeout of a step. */
#define DRM_GPU_TIMEOUT (DURATION_SECOND / 10)

/* Implements a vendor's `list`: adds the devices that the table claims, numbered from 0, with their
 * path as key. Leaves out a device that programs here cannot open, with a problem that names it. */
int drm_gpu_list(const struct vendor_context *context, const struct vendor_table *table,
                 struct findings *findings, struct berth_error *error);

/* Starts a vendor's `read`: adds the device with id, key, path, address, device files, locality,
 * and whether it sleeps, without calling its driver. *ret_device belongs to the findings; the
 * caller adds more facts to it. The caller finishes *ret_drm. Fails with BERTH_ERROR_NOT_FOUND if
 * the device is gone, or _MEMORY. */
int drm_gpu_start_read(const struct vendor_context *context, const struct device_finding *wanted,
                       struct findings *findings, struct device **ret_device,
                       struct drm_device *ret_drm, struct berth_error *error);

/* Returns the string in `compatible` of the device's node in the device tree that begins with
 * `prefix`; with `or_first` the first string if there is none. NULL if there is none or if memory
 * ran out. The caller frees it. */
char *drm_gpu_compatible(const struct sysroot *root, const char *path, const char *prefix,
                         bool or_first);

#endif
