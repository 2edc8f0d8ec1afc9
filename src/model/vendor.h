/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose device it is.
 */
#ifndef MODEL_VENDOR_H
#define MODEL_VENDOR_H

#include "base/choice.h"

enum vendor {
    VENDOR_NVIDIA,
    VENDOR_AMD,
    VENDOR_INTEL,
    VENDOR_APPLE,
    VENDOR_DRI, /* anything else with a DRM render node */
};

/* The names that ids, files and options use: nvidia, amd, intel, apple, dri. */
extern const struct choice vendor_names[];

const char *vendor_name(enum vendor vendor);

#endif
