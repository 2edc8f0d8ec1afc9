/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of KFD's files: lines "name number". Pure; whoever wrote it, only numbers come out.
 */
#ifndef HARDWARE_AMD_KFD_TEXT_H
#define HARDWARE_AMD_KFD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardware/sysfs/sysroot.h"
#include "model/optional.h"

/* A line and where its number goes. */
struct kfd_property {
    const char *name;
    size_t offset; /* of a struct optional_number */
};

/* Decimal digits and nothing else. */
struct optional_number kfd_text_number(const char *digits, size_t length);

/* A number as the kernel names directories: without zeros in front, so that each is there once.
 * Returns whether it is one. */
bool kfd_text_name(const char *name, uint32_t *ret_number);

/* The length without a last line that may have been cut in a number. */
size_t kfd_text_length(const struct sysroot_value *value);

/* Of the lines those that the table has, at most 64; the first of each counts. */
void kfd_text_read(const char *text, size_t length, const struct kfd_property *table, size_t count,
                   void *into);

#endif
