/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory of its own an Intel GPU has, by asking its driver: sysfs does not tell.
 */
#ifndef HARDWARE_INTEL_INTEL_MEMORY_H
#define HARDWARE_INTEL_INTEL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/drm/drm.h"
#include "hardware/sysfs/sysroot.h"
#include "model/optional.h"

struct intel_memory {
    bool answered;                   /* what is not known below is not there */
    struct optional_number total;    /* bytes of all tiles */
    struct optional_number free_now; /* drivers tell only those who may watch all programs */
};

/* ioctl(2), or what a test puts in its place. */
struct intel_driver {
    int (*control)(void *own, unsigned long request, void *argument);
    void *own;
};

/* What the driver of this name (i915, xe) says. */
struct intel_memory intel_memory_query(const char *name, const struct intel_driver *driver);

/* The same of the device's own render node. Nothing is known of a recorded machine's, or where we
 * may not open it. */
struct intel_memory intel_memory_read(const struct sysroot *root, const struct drm_device *drm);

/* The drivers' own declarations, of the kernel's include/uapi/drm/i915_drm.h and xe_drm.h. */
struct i915_query_item {
    uint64_t query;
    int32_t length; /* 0 asks for it; negative: an error */
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
    uint64_t unallocated; /* the size again for those who may not know */
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
    uint32_t size; /* 0 asks for it */
    uint64_t data;
    uint64_t reserved[2];
};

struct xe_region {
    uint16_t class;
    uint16_t instance;
    uint32_t page_size;
    uint64_t size;
    uint64_t used; /* 0 for those who may not know */
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

/* Of both drivers: memory of the device itself. */
#define INTEL_REGION_OWN 1

#endif
