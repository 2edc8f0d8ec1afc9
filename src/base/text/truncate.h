/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts text to a number of terminal columns. The last column of a text that is cut shows a mark.
 * Any thread may call these.
 */
#ifndef BASE_TEXT_TRUNCATE_H
#define BASE_TEXT_TRUNCATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/terminal.h"
#include "base/text/text.h"

struct truncation {
    size_t length; /* bytes of the text */
    size_t width;  /* terminal columns, with the mark when cut */
    bool cut;
};

/* Returns the part of `string` that fits into `room` columns. `room` is at least 1. */
struct truncation truncate_measure(const char *string, size_t room);

/* Appends that part, inert (utf8.h), in a style if the terminal has colours. */
void truncate_append(struct text *out, const char *string, struct truncation piece,
                     enum style style, const struct terminal *terminal);

#endif
