/* SPDX-License-Identifier: Apache-2.0
 *
 * The vendors of devices.
 */
#ifndef MODEL_MACHINE_VENDOR_H
#define MODEL_MACHINE_VENDOR_H

#include <stdint.h>

#include "base/text/choice.h"

enum vendor {
    VENDOR_NVIDIA,
    VENDOR_AMD,
    VENDOR_INTEL,
    VENDOR_APPLE,
    VENDOR_DRI, /* anything else with a DRM render node */
};

/* The vendor of an id that is only an index, until device_id_list_resolve(). No device has it. */
#define VENDOR_UNNAMED ((enum vendor)(VENDOR_DRI + 1))

/* A bit for each vendor. */
#define VENDORS_ALL ((UINT32_C(1) << (VENDOR_DRI + 1)) - 1)

/* The names that ids, files and options use: nvidia, amd, intel, apple, dri. */
extern const struct choice vendor_names[];

const char *vendor_name(enum vendor vendor);

#endif
