/* SPDX-License-Identifier: Apache-2.0
 *
 * A number that may be unknown. Unknown is a value of its own, never a special number.
 */
#ifndef BASE_OPTIONAL_H
#define BASE_OPTIONAL_H

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

static inline bool optional_equals(struct optional_number one, struct optional_number other)
{
    return one.known == other.known && (!one.known || one.value == other.value);
}

#endif
