/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files behind amd_table share.
 */
#ifndef HARDWARE_AMD_AMD_H
#define HARDWARE_AMD_AMD_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "hardware/findings.h"
#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"
#include "model/optional.h"
#include "model/pci.h"

/* What a found device's key says: what has to be known of all devices to know it of one. */
struct amd_key {
    bool has_node; /* KFD lists it */
    uint32_t node;
    struct optional_number gpu_id;
    struct pci_address pci;
    char parent[24]; /* what its GPU's partitions share; "": it is a whole GPU */
};

struct amd_key_text {
    char text[80];
};

/* For use within one expression. */
struct amd_key_text amd_key_format(const struct amd_key *key);

/* Fails with BERTH_ERROR_INVALID; *ret_key is untouched then. */
int amd_key_parse(const char *string, struct amd_key *ret_key, struct berth_error *error);

int amd_read(struct vendor_context *context, const struct device_finding *wanted,
             struct findings *findings, struct berth_error *error);
int amd_links(struct vendor_context *context, const struct finding_list *devices,
              struct findings *findings, struct berth_error *error);

/* Adds load, health and processes of a device that is awake, and what else only its driver knows.
 */
int amd_read_driver(const struct sysroot *root, const char *path, const struct amd_key *key,
                    struct device *device, struct berth_error *error);

#endif
