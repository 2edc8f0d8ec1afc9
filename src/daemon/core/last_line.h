/* SPDX-License-Identifier: Apache-2.0
 *
 * The last line of a program's output that is not blank, in bounded memory. Zeroed memory has seen
 * nothing.
 */
#ifndef DAEMON_CORE_LAST_LINE_H
#define DAEMON_CORE_LAST_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

/* The bytes of a line that are kept. */
enum { LAST_LINE_MAX = 200 };

struct last_line {
    char bytes[LAST_LINE_MAX];
    size_t length;
    bool is_over; /* the next line that is not blank replaces this one */
};

void last_line_add(struct last_line *line, const char *bytes, size_t length);

/* Appends the line, with control characters replaced and without blanks at its end. */
void last_line_append(const struct last_line *line, struct text *out);

#endif
