/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks for fuzz targets, which have no test framework around them.
 */
#ifndef TESTS_REQUIRE_H
#define TESTS_REQUIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/text/utf8.h"

static inline void require(bool condition)
{
    if (!condition)
        abort();
}

/* Requires valid UTF-8 without control characters. */
static inline void require_inert(const char *bytes, size_t length)
{
    require(utf8_is_valid(bytes, length));
    for (size_t i = 0; i < length;) {
        uint32_t character;

        i += utf8_decode(bytes + i, length - i, &character);
        require(!utf8_is_control(character));
    }
}

#endif
