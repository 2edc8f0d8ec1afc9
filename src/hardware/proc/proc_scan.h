/* SPDX-License-Identifier: Apache-2.0
 *
 * One look through the open files of all processes; between the files of uses.h only.
 */
#ifndef HARDWARE_PROC_PROC_SCAN_H
#define HARDWARE_PROC_PROC_SCAN_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/string_list.h"
#include "base/vector.h"
#include "hardware/proc/fdinfo.h"
#include "hardware/sysfs/sysroot.h"
#include "model/load.h"

/* A DRM device. The directory tells it from others; of a partition of a GPU it is another than the
 * GPU's, while the PCI address is the same. Where there is none, the PCI address does; or else the
 * device files. */
struct used_device {
    struct pci_address pci;
    char *path; /* in sysfs, resolved; NULL: unknown */
    struct string_list nodes;
    bool is_open;   /* somebody has it open */
    bool is_opaque; /* not all of its clients can be told apart, so their use cannot be added up */
    bool is_elsewhere; /* it is used by other files as well: that none is open says nothing */
};

/* A descriptor that a process has open. */
struct use {
    size_t device;
    uint64_t pid;
    struct optional_number client;
    struct optional_number memory;
    bool computes; /* the process has what AMD's GPUs compute through open as well */
    bool counts;   /* the first of its client's: with others its memory would count again */
};

/* How much a client has used a class of engines by then. */
struct use_engine {
    size_t device;
    uint64_t client;
    int64_t read_at;
    struct fdinfo_engine engine;
};

struct proc_scan {
    struct {
        VECTOR_OF(struct used_device);
    } devices;
    struct {
        VECTOR_OF(struct use); /* by device, then pid */
    } uses;
    struct {
        VECTOR_OF(struct use_engine); /* by device, client, name; each once */
    } engines;
    int64_t began_at; /* by clock_now */
    bool is_whole;    /* every process could be seen */
};

/* Fills in an empty look. Fails with BERTH_ERROR_MEMORY, or _IO where there is no /proc; the look
 * is to be finished all the same. */
int proc_scan_run(struct proc_scan *scan, const struct sysroot *root, struct berth_error *error);
void proc_scan_finish(struct proc_scan *scan);

/* The place of a device in another look; that look's count of devices when it is not there. */
size_t proc_scan_find_device(const struct proc_scan *scan, const struct used_device *device);

/* How busy the device has been between two looks: that of its engine classes that was so most. What
 * is seen to have gone backwards is put right in `now`. False: that cannot be told. Pure. */
bool proc_scan_utilization(struct proc_scan *now, size_t device, const struct proc_scan *before,
                           int64_t *ret_utilization);

#endif
