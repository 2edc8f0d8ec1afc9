/* SPDX-License-Identifier: Apache-2.0
 *
 * The device files of DRM devices and the devices that they belong to. For the files of proc/ only.
 */
#ifndef HARDWARE_PROC_DEVICE_FILES_H
#define HARDWARE_PROC_DEVICE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/vector.h"
#include "hardware/proc/proc_scan.h"
#include "hardware/sysfs/sysroot.h"
#include "model/machine/pci.h"

#define DEVICE_FILE_NAME_SIZE 32

struct device_file {
    char name[DEVICE_FILE_NAME_SIZE]; /* renderD128 */
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
