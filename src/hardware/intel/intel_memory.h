/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries the driver for an Intel GPU's own memory, which sysfs does not show.
 */
#ifndef HARDWARE_INTEL_INTEL_MEMORY_H
#define HARDWARE_INTEL_INTEL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"
#include "hardware/drm/drm.h"
#include "hardware/sysfs/sysroot.h"

struct intel_memory {
    bool answered;                   /* an unknown value below means that there is none */
    struct optional_number total;    /* in bytes, of all tiles */
    struct optional_number free_now; /* drivers report it only to privileged processes */
};

/* ioctl(2), or its replacement in a test. */
struct intel_driver {
    int (*control)(void *own, unsigned long request, void *argument);
    void *own;
};

/* Queries the driver with this name (i915, xe). */
struct intel_memory intel_memory_query(const char *name, const struct intel_driver *driver);

/* Queries the driver through the device's render node. All values are unknown on a recorded machine
 * or if the node cannot be opened. */
struct intel_memory intel_memory_read(const struct sysroot *root, const struct drm_device *drm);

/* Copied from the kernel's include/uapi/drm/i915_drm.h and xe_drm.h. */
struct i915_query_item {
    uint64_t query;
    int32_t length; /* 0 queries it; negative: an error */
    uint32_t flags;
    uint64_t data;
};

struct i915_query {
    uint32_t count;
    uint32_t flags;
    uint64_t items;
};

struct i915_region {
    uint16_t class;
    uint16_t instance;
    uint32_t reserved;
    uint64_t size;
    uint64_t unallocated; /* equal to the size for unprivileged processes */
    uint64_t more[8];
};

struct i915_regions {
    uint32_t count;
    uint32_t reserved[3];
    struct i915_region regions[];
};

struct xe_query {
    uint64_t extensions;
    uint32_t query;
    uint32_t size; /* 0 queries it */
    uint64_t data;
    uint64_t reserved[2];
};

struct xe_region {
    uint16_t class;
    uint16_t instance;
    uint32_t page_size;
    uint64_t size;
    uint64_t used; /* 0 for unprivileged processes */
    uint64_t visible_size;
    uint64_t visible_used;
    uint64_t reserved[6];
};

struct xe_regions {
    uint32_t count;
    uint32_t reserved;
    struct xe_region regions[];
};

#define I915_REQUEST_QUERY 0xc0106479UL
#define I915_QUERY_REGIONS 4
#define XE_REQUEST_QUERY   0xc0286440UL
#define XE_QUERY_REGIONS   1

/* The device's own memory, for both drivers. */
#define INTEL_REGION_OWN 1

#endif
