/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches any bytes as a pci.ids file. A name that is found can be printed. The first four bytes
 * are the ids to search for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/sysfs/pci_names.h"
#include "support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two vendors with short names, an unknown vendor, and 0. */
static const uint32_t vendors[] = {0x1002, 0x8086, 0xabcd, 0};

static void try_name(const struct pci_name_table *ids, uint32_t vendor, uint32_t device)
{
    char *name = pci_name_table_find(ids, vendor, device);

    require(name != NULL);
    require(name[0] != '\0' && strlen(name) < 1000);
    require_inert(name, strlen(name));
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text content = {0};
    struct pci_name_table ids;
    uint32_t vendor;
    uint32_t device;

    if (size < 4)
        return 0;
    vendor = (uint32_t)data[0] << 8 | data[1];
    device = (uint32_t)data[2] << 8 | data[3];
    text_append_bytes(&content, data + 4, size - 4);
    require(!text_failed(&content));
    require(pci_name_table_init(&ids, &content) == 0);
    try_name(&ids, vendor, device);
    for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++)
        try_name(&ids, vendors[i], device);
    pci_name_table_finish(&ids);
    return 0;
}
