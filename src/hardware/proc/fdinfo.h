/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel says of an open DRM device: the text of /proc/PID/fdinfo/FD, by the rules of
 * drm-usage-stats. Pure.
 */
#ifndef HARDWARE_PROC_FDINFO_H
#define HARDWARE_PROC_FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/optional.h"
#include "model/pci.h"

/* No driver has half as many; those beyond are left out. */
#define FDINFO_ENGINES_MAX  32
#define FDINFO_NAME_SIZE    32
#define FDINFO_CAPACITY_MAX 1024

/* A class of engines: render, video, ... How much of it the client has used since it began, in
 * time, or in cycles out of those that the engine has made. */
struct fdinfo_engine {
    char name[FDINFO_NAME_SIZE];
    struct optional_number busy; /* nanoseconds */
    struct optional_number cycles;
    struct optional_number total_cycles;
    uint64_t capacity; /* how many engines there are, 1 to FDINFO_CAPACITY_MAX */
};

struct fdinfo {
    bool is_drm; /* it names its driver: the kernel itself says that this is a DRM device */
    struct pci_address pci;
    struct optional_number client; /* the same for all descriptors of one open file */
    struct optional_number memory; /* bytes */
    struct fdinfo_engine engines[FDINFO_ENGINES_MAX];
    size_t engine_count;
};

/* Reads the text, which need not be terminated. A line that is not as it should be (number too
 * large, unknown unit, key given before, no newline at its end: it was cut) is as good as absent.
 *
 * Memory is what is resident in the device's own memory (vram, vram0, local0, ...), not in the
 * system's that it can reach (gtt, system, cpu). A device that has none of its own, an integrated
 * one, lives in the system's: there it is what is resident anywhere, as people know it from nvtop.
 * Where the driver does not tell what is resident, the total is taken. */
void fdinfo_parse(const char *bytes, size_t length, struct fdinfo *ret_fdinfo);

#endif
