/* SPDX-License-Identifier: Apache-2.0
 *
 * The vendors, one table each. Their functions run in a worker process of berth-probe, one step at
 * a time. A step that hangs or crashes costs only the facts that the step is about. So each step
 * should cover as little as possible, and `list` should touch no driver: the names of directories
 * and links are the kernel's own, while the files in them may belong to a driver.
 */
#ifndef HARDWARE_VENDORS_H
#define HARDWARE_VENDORS_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "hardware/findings.h"
#include "hardware/sysfs/sysroot.h"
#include "model/machine/vendor.h"

/* A vendor's state, which the worker keeps from step to step. */
struct vendor_context {
    const struct sysroot *root;
    void *own; /* the vendor's data; NULL at first; freed by `close` */
};

struct vendor_table {
    enum vendor vendor;

    /* Names of kernel drivers whose DRM devices belong to this vendor, terminated by NULL. No other
     * vendor lists these devices. NULL: none. */
    const char *const *drivers;

    /* PCI vendor id whose devices belong to this vendor if their driver is unknown; 0: none. */
    uint32_t pci_vendor;

    /* Timeout of a step in nanoseconds. After it, another worker continues with the other steps
     * while this one is still awaited. */
    int64_t timeout;

    /* One worker executes the steps of all vendors with the same lane in order. A vendor whose
     * library may block or crash has its own lane. */
    unsigned lane;

    /* Adds the vendor's candidates: parts of the machine whose files must be read before the
     * devices can be numbered. Each candidate has only a key. May read names of directories and
     * links only. Returns 0 or a code; on failure the cached devices of this vendor stay as they
     * are. NULL: the vendor needs no candidates. */
    int (*list_candidates)(struct vendor_context *context, struct findings *findings,
                           struct berth_error *error);

    /* Reads one candidate. Adds a finding whose key holds the facts that `list` needs, or nothing
     * if the candidate does not exist any more. Fails with a code. NULL: no candidates. */
    int (*read_candidate)(struct vendor_context *context, const struct device_finding *candidate,
                          struct findings *findings, struct berth_error *error);

    /* Adds all devices, each with its id and key and, if it has them, its PCI address and path.
     * `candidates` has the result of `read_candidate` for each candidate, in any order; for a
     * candidate that has not answered it has the result of `list_candidates`. Returns 0, also if
     * there are no devices for an ordinary reason (no library, no driver). Otherwise returns a
     * code, and the cached devices of this vendor stay as they are. A problem that concerns only
     * some devices is added to the findings. */
    int (*list)(struct vendor_context *context, const struct finding_list *candidates,
                struct findings *findings, struct berth_error *error);

    /* Reads one device that was listed: adds the device and then its partitions, with all current
     * facts, loads and processes. Does not wake a sleeping device. Fails with a code and the
     * reason; the device is sick then. A single fact that cannot be read is unknown and not an
     * error. */
    int (*read)(struct vendor_context *context, const struct device_finding *wanted,
                struct findings *findings, struct berth_error *error);

    /* Adds the links between these devices, which all belong to this vendor: fabric links, and PCIe
     * paths if the vendor knows them better than sysfs. NULL: sysfs has all facts. */
    int (*links)(struct vendor_context *context, const struct finding_list *devices,
                 struct findings *findings, struct berth_error *error);

    /* Frees `own`. NULL: there is nothing to free. */
    void (*close)(struct vendor_context *context);
};

extern const struct vendor_table nvidia_table;
extern const struct vendor_table amd_table;
extern const struct vendor_table intel_table;
extern const struct vendor_table apple_table;
extern const struct vendor_table dri_table;

/* All tables, in the order of enum vendor; terminated by NULL. */
extern const struct vendor_table *const vendor_tables[];

/* The last two lanes read /proc: one scans all processes, while the other one describes processes
 * that use a device. */
enum { LANE_NVIDIA, LANE_SYSFS, LANE_PROCESSES, LANE_DESCRIPTIONS, LANES };

#endif
