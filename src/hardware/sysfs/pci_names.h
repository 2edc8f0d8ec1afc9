/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of PCI devices, for those whose driver gives none: from pci.ids, if it is installed. The
 * file is read once and kept: not for use by two threads at once.
 */
#ifndef HARDWARE_SYSFS_PCI_NAMES_H
#define HARDWARE_SYSFS_PCI_NAMES_H

#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "hardware/sysfs/sysroot.h"

/* The name of the device in this directory by its `vendor` and `device` files, or by `uevent` where
 * no more was recorded: what pci.ids says (the text in brackets where there is some: "Vega 10 XL/XT
 * [Radeon RX Vega 56/64]" gives "Radeon RX Vega 56/64"), after the vendor's short name when that is
 * not part of it; without pci.ids "AMD Device 687f". Names of boards (subsystems) are left alone:
 * who made a card is not what it is. NULL when no file tells the ids, or no memory. The caller
 * frees it. */
char *pci_name(const struct sysroot *root, const char *path);

/* The same by ids, for a device whose directory is not there. NULL: no memory. */
char *pci_name_by_ids(const struct sysroot *root, uint32_t vendor, uint32_t device);

/* Forgets the file that was read. */
void pci_names_finish(void);

/* What the text of a pci.ids says, whoever wrote it. */
struct pci_name_table {
    struct text content;
    struct {
        VECTOR_OF(struct pci_name_vendor);
    } vendors;
};

/* Finds the vendors in `content`, which is the ids' from now on. Returns 0 or BERTH_ERROR_MEMORY;
 * the ids are to be finished in any case. */
int pci_name_table_init(struct pci_name_table *ids, struct text *content);
void pci_name_table_finish(struct pci_name_table *ids);

/* Makes a name as pci_name does; NULL: no memory. The caller frees it. Well-formed and inert. */
char *pci_name_table_find(const struct pci_name_table *ids, uint32_t vendor, uint32_t device);

#endif
