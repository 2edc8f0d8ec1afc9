/* SPDX-License-Identifier: Apache-2.0
 *
 * The vendors, behind one table each. These run in a worker process of berth-probe, one step at a
 * time: one that hangs or crashes costs what that step was about, and nothing else. So a step
 * should be about as little as possible, and `list` should touch no driver: names of directories
 * and links are the kernel's own, while the files in them may be a driver's.
 */
#ifndef HARDWARE_VENDORS_H
#define HARDWARE_VENDORS_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "hardware/findings.h"
#include "hardware/sysfs/sysroot.h"
#include "model/vendor.h"

/* What a vendor works with, kept by the worker from step to step. */
struct vendor_context {
    const struct sysroot *root;
    void *own; /* the vendor's: NULL at first; freed by `close` */
};

struct vendor_table {
    enum vendor vendor;

    /* Names of kernel drivers whose DRM devices are this vendor's, ended by NULL: nobody else lists
     * them. NULL: none. */
    const char *const *drivers;

    /* The PCI vendor id whose devices are this vendor's where no driver is known; 0: none. */
    uint32_t pci_vendor;

    /* How long (nanoseconds) a step usually takes at most: when one takes longer, another worker
     * goes on with the others while it is waited for. */
    int64_t timeout;

    /* Steps of vendors with the same lane are done one after the other by one worker: a vendor
     * whose library may do what it likes has its own. */
    unsigned lane;

    /* Adds all devices that there are, at least with id, key and, where it has one, PCI address and
     * path. Returns 0, also when there are none for whatever ordinary reason (no library, no
     * driver); else a code: what is known of this vendor's devices stays as it was. Problems that
     * concern a part only are added to the sight. */
    int (*list)(struct vendor_context *context, struct findings *findings,
                struct berth_error *error);

    /* Looks at one device that was listed: adds it, and after it its partitions, with all that is
     * known now, loads and processes included. One that is asleep is left so. Fails with a code and
     * the reason: the device is sick. Single facts that cannot be had are unknown, not an error. */
    int (*read)(struct vendor_context *context, const struct device_finding *wanted,
                struct findings *findings, struct berth_error *error);

    /* Adds the links among these devices, all of this vendor: fabric links, and PCIe paths where
     * the vendor knows better than sysfs. NULL: sysfs tells all. */
    int (*links)(struct vendor_context *context, const struct finding_list *devices,
                 struct findings *findings, struct berth_error *error);

    /* Frees what `own` points to. NULL: nothing. */
    void (*close)(struct vendor_context *context);
};

extern const struct vendor_table nvidia_table;
extern const struct vendor_table amd_table;
extern const struct vendor_table intel_table;
extern const struct vendor_table apple_table;
extern const struct vendor_table dri_table;

/* All of them, by enum vendor; ended by NULL. */
extern const struct vendor_table *const vendor_tables[];

enum { LANE_NVIDIA, LANE_SYSFS, LANE_PROCESSES, LANES };

#endif
