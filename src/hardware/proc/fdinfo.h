/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses /proc/PID/fdinfo/FD of an open DRM device, in the kernel's format drm-usage-stats. Pure.
 */
#ifndef HARDWARE_PROC_FDINFO_H
#define HARDWARE_PROC_FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/optional.h"
#include "model/machine/pci.h"

/* Limits of the engines. No driver has half as many; further ones are ignored. */
#define FDINFO_ENGINES_MAX  32
#define FDINFO_NAME_SIZE    32
#define FDINFO_CAPACITY_MAX 1024

/* A class of engines (render, video, ...) and how much of it the client has used since it started:
 * in time, or in cycles out of the engine's total cycles. */
struct fdinfo_engine {
    char name[FDINFO_NAME_SIZE];
    struct optional_number busy; /* in nanoseconds */
    struct optional_number cycles;
    struct optional_number total_cycles;
    uint64_t capacity; /* number of engines, 1 to FDINFO_CAPACITY_MAX */
};

struct fdinfo {
    bool is_drm; /* it names its driver, so the kernel says that this is a DRM device */
    struct pci_address pci;
    struct optional_number client; /* equal for all descriptors of one open file */
    struct optional_number memory; /* in bytes */
    struct fdinfo_engine engines[FDINFO_ENGINES_MAX];
    size_t engine_count;
};

/* Parses the text, which need not be terminated. Ignores an invalid line (number too large, unknown
 * unit, repeated key, or no newline because it was truncated).
 *
 * The memory is the part that is resident in the device's own memory (vram, vram0, local0, ...),
 * not in the system memory that it can reach (gtt, system, cpu). An integrated device has no memory
 * of its own; for it, everything that is resident counts, as in nvtop. If the driver does not
 * report resident memory, the total counts. */
void fdinfo_parse(const char *bytes, size_t length, struct fdinfo *ret_fdinfo);

#endif
