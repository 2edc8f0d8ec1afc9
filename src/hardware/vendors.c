/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/vendors.h"

const struct vendor_table *const vendor_tables[] = {
    &nvidia_table, &amd_table, &intel_table, &apple_table, &dri_table, NULL,
};
