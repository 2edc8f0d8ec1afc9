/* SPDX-License-Identifier: Apache-2.0
 *
 * A PCI address with a 32-bit domain.
 */
#ifndef MODEL_MACHINE_PCI_H
#define MODEL_MACHINE_PCI_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

struct pci_address {
    bool known;
    uint32_t domain;
    uint8_t bus;
    uint8_t device;   /* 0 to 31 */
    uint8_t function; /* 0 to 7 */
};

struct pci_text {
    char text[24];
};

/* Formats an address as the kernel does, 0000:07:00.0, for use within one expression. */
struct pci_text pci_format(struct pci_address address);

/* Parses [domain:]bus:device.function in hexadecimal; a missing domain is 0. Fails with
 * BERTH_ERROR_SYNTAX; *ret_address is untouched then. */
int pci_parse(const char *string, struct pci_address *ret_address, struct berth_error *error);

/* Compares by domain, bus, device and function. Returns a negative number, 0 or a positive number.
 * Both addresses must be known. */
int pci_compare(struct pci_address one, struct pci_address other);

#endif
