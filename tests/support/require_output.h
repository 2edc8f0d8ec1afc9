/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks, for fuzz targets, that hold for all output of berth.
 */
#ifndef TESTS_REQUIRE_OUTPUT_H
#define TESTS_REQUIRE_OUTPUT_H

#include <berth/error.h>
#include <string.h>

#include "base/text/text.h"
#include "support/require.h"

/* Requires that the text is complete and not empty, and that each of its lines is inert. */
static inline void require_lines(const struct text *text)
{
    const char *line = text_string(text);

    require(!text_failed(text) && text->length > 0 && strlen(line) == text->length);
    while (*line != '\0') {
        size_t length = strcspn(line, "\n");

        require_inert(line, length);
        line += length;
        line += *line == '\n';
    }
}

/* Requires that a failure with this code left a message that can be printed. */
static inline void require_message(const struct berth_error *error, int code)
{
    require(code < 0 && error->code == code);
    require(error->message[0] != '\0');
    require_inert(error->message, strlen(error->message));
}

#endif
