/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/vendor.h"

const struct choice vendor_names[] = {
    {"nvidia", VENDOR_NVIDIA}, {"amd", VENDOR_AMD}, {"intel", VENDOR_INTEL},
    {"apple", VENDOR_APPLE},   {"dri", VENDOR_DRI}, {0},
};

const char *vendor_name(enum vendor vendor)
{
    return vendor == VENDOR_UNNAMED ? "" : choice_name(vendor_names, (int)vendor);
}
