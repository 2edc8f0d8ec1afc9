/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of PCI devices, for those whose driver gives none: from pci.ids, if it is installed.
 */
#ifndef HARDWARE_PCI_NAMES_H
#define HARDWARE_PCI_NAMES_H

#include "hardware/root.h"

/* The name of the device in this directory by its `vendor`, `device` and subsystem files: what
 * pci.ids says (the text in brackets where there is some: "Vega 10 XL/XT [Radeon RX Vega 56/64]"
 * gives "Radeon RX Vega 56/64"), after the vendor's short name when that is not part of it; without
 * pci.ids "AMD Device 687f". NULL when there is no vendor or device file, or no memory. The caller
 * frees it. */
char *pci_name(const struct root *root, const char *path);

#endif
