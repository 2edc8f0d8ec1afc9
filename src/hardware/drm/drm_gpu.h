/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done in the same way for every GPU that is known by its DRM device alone.
 */
#ifndef HARDWARE_DRM_DRM_GPU_H
#define HARDWARE_DRM_DRM_GPU_H

#include <berth/error.h>

#include "base/text/quantity.h"
#include "hardware/drm/drm.h"
#include "hardware/findings.h"
#include "hardware/vendors.h"

/* How long a step takes at most, unless a driver hangs. */
#define DRM_GPU_TIMEOUT (DURATION_SECOND / 10)

/* A vendor's `list`: adds what the table claims, counted from 0, keyed by path. One that programs
 * here cannot get at is left out, with a problem that names it. */
int drm_gpu_list(const struct vendor_context *context, const struct vendor_table *table,
                 struct findings *findings, struct berth_error *error);

/* The beginning of a vendor's `read`: adds the device with id, key, path, address, device files,
 * place, and whether it sleeps, all without asking its driver. *ret_device is the sight's, to be
 * filled in further; the caller finishes *ret_drm. Fails with BERTH_ERROR_NOT_FOUND when it is
 * gone, or _MEMORY. */
int drm_gpu_start_read(const struct vendor_context *context, const struct device_finding *wanted,
                       struct findings *findings, struct device **ret_device,
                       struct drm_device *ret_drm, struct berth_error *error);

/* The string of the device's node in the device tree (`compatible` lists several) that begins with
 * `prefix`, else the first when `or_first`; NULL when there is none or no memory. The caller frees
 * it. */
char *drm_gpu_compatible(const struct sysroot *root, const char *path, const char *prefix,
                         bool or_first);

#endif
