/* SPDX-License-Identifier: Apache-2.0
 *
 * The locality of devices: NUMA node, nearby CPUs, the PCIe path between two devices, and whether a
 * device sleeps.
 */
#ifndef HARDWARE_SYSFS_LOCALITY_H
#define HARDWARE_SYSFS_LOCALITY_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "hardware/sysfs/sysroot.h"
#include "model/machine/device.h"
#include "model/machine/link.h"

/* Returns the resolved directory of a PCI device; NULL if there is none. The caller frees it. */
char *locality_pci_path(const struct sysroot *root, struct pci_address pci);

/* Returns the PCI device of a directory or of its parent (a virtio device is the child of a PCI
 * device); unknown if neither is one. *ret_length, unless NULL, is the length of the part of the
 * path that names it. Pure. */
struct pci_address locality_pci_of(const char *path, size_t *ret_length);

/* Fills in the NUMA node and the nearby CPUs of the device in this directory, if they are known and
 * not filled in already. Fails with BERTH_ERROR_MEMORY. */
int locality_read(const struct sysroot *root, const char *path, struct device *device,
                  struct berth_error *error);

/* Parses a list of CPUs as the kernel writes it, "0-15,32-47", in ascending order and without
 * duplicates. *ret_cpus is NULL if the list is invalid or empty; the caller frees it. Fails with
 * BERTH_ERROR_MEMORY. Pure. */
int locality_parse_cpus(const char *list, char **ret_cpus, struct berth_error *error);

/* Returns whether the device is powered down (power/runtime_status is suspended). Reading more of
 * its files would wake it. */
bool locality_is_asleep(const struct sysroot *root, const char *path);

/* Finds the PCIe path between two devices from their directories and NUMA nodes: psb for functions
 * of one device or partitions of one board (the same directory), pix below one switch, pxb below
 * several, phb below one host bridge, node within one NUMA node, otherwise sys. Returns false if it
 * is unknown: one is not a PCI device, or they share no host bridge and a NUMA node is unknown.
 * Pure. */
bool locality_between(const char *one_path, struct optional_number one_numa, const char *other_path,
                      struct optional_number other_numa, enum link_kind *ret_kind);

#endif
