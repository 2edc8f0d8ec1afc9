/* SPDX-License-Identifier: Apache-2.0
 *
 * Compute capability: 8.0 is major 8, minor 0; 8.10 is above 8.9.
 */
#ifndef MODEL_MACHINE_CAPABILITY_H
#define MODEL_MACHINE_CAPABILITY_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

struct capability {
    bool known;
    uint16_t major;
    uint16_t minor;
};

struct capability_text {
    char text[16];
};

/* Formats a capability, "8.0", for use within one expression. */
struct capability_text capability_format(struct capability capability);

/* Parses MAJOR.MINOR, or MAJOR alone for minor 0; each is at most 999. Fails with
 * BERTH_ERROR_SYNTAX; *ret_capability is untouched then. */
int capability_parse(const char *string, struct capability *ret_capability,
                     struct berth_error *error);

/* Returns whether `capability` is known and not below `min`. */
bool capability_is_at_least(struct capability capability, struct capability min);

#endif
