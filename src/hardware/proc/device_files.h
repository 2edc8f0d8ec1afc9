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

#define NODE_NAME_SIZE 32

struct node {
    char name[NODE_NAME_SIZE]; /* renderD128 */
    char *path;                /* the directory of its device, resolved; NULL: unknown */
    struct pci_address pci;    /* of that */
    bool is_there;             /* there is a character device of this name here */
    bool is_elsewhere;         /* as in struct used_device */
    dev_t number;
};

struct node_list {
    VECTOR_OF(struct node);
};

/* Whether nobody can have a DRM device open, because the machine has none. */
bool node_list_is_pointless(const struct root *root);

/* The node that a descriptor's link leads to; NULL when that is no DRM device file. Good until the
 * next call. Fails with BERTH_ERROR_MEMORY. */
int node_list_need(struct node_list *list, const struct root *root, const char *target,
                   struct node **ret_node);

/* Adds the devices of all files in /dev/dri to the look. Fails with BERTH_ERROR_MEMORY. */
int node_list_add_present(struct node_list *list, const struct root *root, struct look *look);

void node_list_finish(struct node_list *list);

/* The device of this file in the look, added when it is not there yet. The kernel's word for its
 * PCI address, where it gives one, stands above the file's name, which may be another in a
 * container. Fails with BERTH_ERROR_MEMORY. */
int node_device(const struct node *node, struct pci_address pci, struct look *look,
                size_t *ret_place);

#endif
