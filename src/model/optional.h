/* SPDX-License-Identifier: Apache-2.0
 *
 * Unknown is a value: a number that may be absent carries its validity, never a magic 0.
 */
#ifndef MODEL_OPTIONAL_H
#define MODEL_OPTIONAL_H

#include <stdbool.h>
#include <stdint.h>

struct optional_number {
    bool known;
    uint64_t value; /* meaningless unless known */
};

static inline struct optional_number optional_number_of(uint64_t value)
{
    return (struct optional_number){.known = true, .value = value};
}

#endif
