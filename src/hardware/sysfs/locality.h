/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a device is: NUMA node, nearby CPUs, the PCIe path between two, and whether it sleeps.
 */
#ifndef HARDWARE_SYSFS_LOCALITY_H
#define HARDWARE_SYSFS_LOCALITY_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "hardware/sysfs/sysroot.h"
#include "model/device.h"
#include "model/link.h"

/* The directory of a PCI device, resolved; NULL when it is not there. The caller frees it. */
char *locality_pci_path(const struct sysroot *root, struct pci_address pci);

/* The PCI device that a directory is, or that its parent is (a virtio device is the child of one);
 * not known when neither is. *ret_length, unless NULL, is how much of the path names it. Pure. */
struct pci_address locality_pci_of(const char *path, size_t *ret_length);

/* Fills in the NUMA node and the nearby CPUs of the device in this directory, as far as they are
 * known and not filled in already. Fails with BERTH_ERROR_MEMORY. */
int locality_read(const struct sysroot *root, const char *path, struct device *device,
                  struct berth_error *error);

/* Takes a list of CPUs as the kernel writes it, "0-15,32-47", in ascending order and without
 * repeats. *ret_cpus is NULL when it is none, or empty; the caller frees it. Fails with
 * BERTH_ERROR_MEMORY. Pure. */
int locality_parse_cpus(const char *list, char **ret_cpus, struct berth_error *error);

/* Whether the device is powered down (power/runtime_status says suspended): looking closer would
 * wake it. */
bool locality_is_asleep(const struct sysroot *root, const char *path);

/* The PCIe path between two devices by their directories and NUMA nodes: psb when they are
 * functions of one device or one board's partitions (the same directory), pix below one switch, pxb
 * below several, phb below one host bridge, node within one NUMA node, else sys. Returns false when
 * it cannot be told: one is no PCI device, or neither a host bridge nor known NUMA nodes compare
 * them. Pure. */
bool locality_between(const char *one_path, struct optional_number one_numa, const char *other_path,
                      struct optional_number other_numa, enum link_kind *ret_kind);

#endif
