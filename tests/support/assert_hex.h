/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares bytes with a text of hexadecimal digits.
 */
#ifndef TESTS_ASSERT_HEX_H
#define TESTS_ASSERT_HEX_H

#include "support/unit.h"

#include "base/text/text.h"

/* Checks that the bytes are these hexadecimal digits. */
static inline void assert_hex(const struct text *bytes, const char *wanted)
{
    struct text hex = {0};

    for (size_t i = 0; i < bytes->length; i++)
        text_append_format(&hex, "%02x", (unsigned char)bytes->bytes[i]);
    assert_string_equal(text_string(&hex), wanted);
    text_finish(&hex);
}

#endif
