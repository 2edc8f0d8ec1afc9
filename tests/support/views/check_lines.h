/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of human-readable output.
 */
#ifndef TESTS_CHECK_LINES_H
#define TESTS_CHECK_LINES_H

#include <string.h>

#include "base/text/text.h"
#include "base/text/utf8.h"
#include "support/unit.h"

/* Checks that every line fits the width, has no control characters and does not end with a blank.
 */
static inline void check_lines(const struct text *out, size_t width)
{
    const char *line = text_string(out);

    while (*line != '\0') {
        size_t length = strcspn(line, "\n");
        char copy[1024];

        assert_true(length < sizeof(copy));
        memcpy(copy, line, length);
        copy[length] = '\0';
        if (utf8_width(copy) > width)
            fail_msg("wider than %zu: %s", width, copy);
        assert_true(length == 0 || copy[length - 1] != ' ');
        for (size_t i = 0; i < length; i++)
            assert_true((unsigned char)copy[i] >= ' ');
        line += length + (line[length] == '\n');
    }
}

#endif
