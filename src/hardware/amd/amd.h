/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files behind amd_table.
 */
#ifndef HARDWARE_AMD_AMD_H
#define HARDWARE_AMD_AMD_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"
#include "hardware/findings.h"
#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"
#include "model/machine/pci.h"

/* The content of a device's key: the facts about it that depend on other devices. */
struct amd_key {
    bool has_node; /* KFD lists it */
    uint32_t node;
    struct optional_number gpu_id;
    struct pci_address pci;
    char parent[24]; /* common to the partitions of a GPU; "": a whole GPU */
};

struct amd_key_text {
    char text[80];
};

/* Returns the key as text, for use within one expression. */
struct amd_key_text amd_key_format(const struct amd_key *key);

/* Parses such a text. Fails with BERTH_ERROR_INVALID; *ret_key is unchanged then. */
int amd_key_parse(const char *string, struct amd_key *ret_key, struct berth_error *error);

int amd_read(struct vendor_context *context, const struct device_finding *wanted,
             struct findings *findings, struct berth_error *error);
int amd_links(struct vendor_context *context, const struct finding_list *devices,
              struct findings *findings, struct berth_error *error);

/* Adds the load, health, processes and other facts that only the driver knows. The device must be
 * awake. */
int amd_read_driver(const struct sysroot *root, const char *path, const struct amd_key *key,
                    struct device *device, struct berth_error *error);

#endif
