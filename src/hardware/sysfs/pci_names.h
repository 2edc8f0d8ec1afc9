/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of PCI devices whose driver gives none, from pci.ids if it is installed. The file is read
 * once and kept, so only one thread may call these functions.
 */
#ifndef HARDWARE_SYSFS_PCI_NAMES_H
#define HARDWARE_SYSFS_PCI_NAMES_H

#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "hardware/sysfs/sysroot.h"

/* Returns the name of the device in this directory, by its `vendor` and `device` files, or by its
 * `uevent` if only that was recorded. The name is that of pci.ids, or its text in brackets ("Vega
 * 10 XL/XT [Radeon RX Vega 56/64]" becomes "Radeon RX Vega 56/64"), after the vendor's short name
 * unless it contains it; without pci.ids it is "AMD Device 687f". Names of boards (subsystems) are
 * ignored. NULL if the ids are unknown or if memory ran out. The caller frees it. */
char *pci_name(const struct sysroot *root, const char *path);

/* The same by ids, for a device without a directory. NULL if memory ran out. */
char *pci_name_by_ids(const struct sysroot *root, uint32_t vendor, uint32_t device);

/* Frees the file's content. */
void pci_names_finish(void);

/* The content of a pci.ids file, which may be invalid. */
struct pci_name_table {
    struct text content;
    struct {
        VECTOR_OF(struct pci_name_vendor);
    } vendors;
};

/* Finds the vendors in `content`, which it takes over. Returns 0 or BERTH_ERROR_MEMORY; the caller
 * finishes *ids also on failure. */
int pci_name_table_init(struct pci_name_table *ids, struct text *content);
void pci_name_table_finish(struct pci_name_table *ids);

/* Returns a name like pci_name(); valid UTF-8 without control characters. NULL if memory ran out.
 * The caller frees it. */
char *pci_name_table_find(const struct pci_name_table *ids, uint32_t vendor, uint32_t device);

#endif
