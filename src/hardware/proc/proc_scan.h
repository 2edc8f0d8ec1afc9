/* SPDX-License-Identifier: Apache-2.0
 *
 * One scan of the open files of all processes, and the DRM devices that the files belong to. For
 * the files of proc/ only.
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
#include "hardware/proc/proc_watch.h"
#include "hardware/sysfs/sysroot.h"
#include "model/machine/load.h"

/* A DRM device. Its directory identifies it: a partition of a GPU has its own directory but the PCI
 * address of the GPU. If the directory is unknown, the PCI address identifies it, otherwise its
 * device files. */
struct used_device {
    struct pci_address pci;
    char *path; /* its resolved directory in sysfs; NULL: unknown */
    struct string_list nodes;
    bool is_open;      /* a process has it open */
    bool is_opaque;    /* not all its clients can be told apart, so their use cannot be added up */
    bool is_elsewhere; /* it is used through other files as well, so it may be busy while no process
                        * has this one open */
};

/* A descriptor that a process has open. */
struct use {
    size_t device;
    uint64_t pid;
    struct optional_number client;
    struct optional_number memory;
    bool computes; /* the process also has /dev/kfd open, through which AMD's GPUs compute */
    bool counts;   /* it is its client's first descriptor; the memory of the others is the same */
};

/* A client's use of a class of engines, up to the scan. */
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
        VECTOR_OF(struct use); /* ordered by device, then pid */
    } uses;
    struct {
        VECTOR_OF(struct use_engine); /* ordered by device, client, name; without duplicates */
    } engines;
    int64_t began_at; /* by clock_now() */
    bool is_whole;    /* every process was visible */
};

/* Fills in an empty scan. `watch` is NULL if the scan is not watched. Fails with
 * BERTH_ERROR_MEMORY, or _IO if there is no /proc. The caller finishes the scan, also on
 * failure. */
int proc_scan_run(struct proc_scan *scan, const struct sysroot *root,
                  const struct proc_watch *watch, struct berth_error *error);
void proc_scan_finish(struct proc_scan *scan);

/* Returns the position of a device in another scan; that scan's number of devices if it is missing.
 */
size_t proc_scan_find_device(const struct proc_scan *scan, const struct used_device *device);

/* Computes the device's utilization between two scans: that of its busiest class of engines.
 * Corrects counters in `now` that went backwards. Returns false if it cannot be computed. Pure. */
bool proc_scan_utilization(struct proc_scan *now, size_t device, const struct proc_scan *before,
                           int64_t *ret_utilization);

/* ---- The device files of DRM devices (device_files.c) ---- */

#define DEVICE_FILE_NAME_SIZE 32

struct device_file {
    char name[DEVICE_FILE_NAME_SIZE]; /* renderD128; empty: unknown */
    char *path;                       /* the resolved directory of its device; NULL: unknown */
    struct pci_address pci;           /* of the device */
    bool is_there;                    /* a character device with this name exists here */
    bool is_elsewhere;                /* as in struct used_device */
    dev_t number;
};

struct device_file_list {
    VECTOR_OF(struct device_file);
};

/* Returns whether no process can have a DRM device open, because the machine has none. */
bool device_files_are_absent(const struct sysroot *root);

/* Gets the device file that a descriptor's link leads to; NULL if the link leads to another file.
 * Valid until the next call. Fails with BERTH_ERROR_MEMORY. */
int device_file_list_get(struct device_file_list *list, const struct sysroot *root,
                         const char *target, struct device_file **ret_node);

/* Adds the devices of all files in /dev/dri to the scan. Fails with BERTH_ERROR_MEMORY. */
int device_file_list_add_present(struct device_file_list *list, const struct sysroot *root,
                                 struct proc_scan *scan);

void device_file_list_finish(struct device_file_list *list);

/* Gets the file's device in the scan, which is added if it is missing. A PCI address from the
 * kernel takes precedence over the file's name, which may differ in a container. Fails with
 * BERTH_ERROR_MEMORY. */
int device_file_add_device(const struct device_file *node, struct pci_address pci,
                           struct proc_scan *scan, size_t *ret_place);

#endif
