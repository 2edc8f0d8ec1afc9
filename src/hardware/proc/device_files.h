/* SPDX-License-Identifier: Apache-2.0
 *
 * Device files of DRM devices by name, and whose they are; between the files of uses.h only.
 */
#ifndef HARDWARE_PROC_DEVICE_FILES_H
#define HARDWARE_PROC_DEVICE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/vector.h"
#include "hardware/proc/proc_scan.h"
#include "hardware/sysfs/sysroot.h"
#include "model/pci.h"

#define DEVICE_FILE_NAME_SIZE 32

struct device_file {
    char name[DEVICE_FILE_NAME_SIZE]; /* renderD128 */
    char *path;                       /* the directory of its device, resolved; NULL: unknown */
    struct pci_address pci;           /* of that */
    bool is_there;                    /* there is a character device of this name here */
    bool is_elsewhere;                /* as in struct used_device */
    dev_t number;
};

struct device_file_list {
    VECTOR_OF(struct device_file);
};

/* Whether nobody can have a DRM device open, because the machine has none. */
bool device_files_are_absent(const struct sysroot *root);

/* The node that a descriptor's link leads to; NULL when that is no DRM device file. Good until the
 * next call. Fails with BERTH_ERROR_MEMORY. */
int device_file_list_get(struct device_file_list *list, const struct sysroot *root,
                         const char *target, struct device_file **ret_node);

/* Adds the devices of all files in /dev/dri to the look. Fails with BERTH_ERROR_MEMORY. */
int device_file_list_add_present(struct device_file_list *list, const struct sysroot *root,
                                 struct proc_scan *scan);

void device_file_list_finish(struct device_file_list *list);

/* The device of this file in the look, added when it is not there yet. The kernel's word for its
 * PCI address, where it gives one, stands above the file's name, which may be another in a
 * container. Fails with BERTH_ERROR_MEMORY. */
int device_file_add_device(const struct device_file *node, struct pci_address pci,
                           struct proc_scan *scan, size_t *ret_place);

#endif
