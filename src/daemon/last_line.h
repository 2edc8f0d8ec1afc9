/* SPDX-License-Identifier: Apache-2.0
 *
 * The last line with something in it of what a program prints, however much that is. Zeroed memory
 * is one that has seen nothing.
 */
#ifndef DAEMON_LAST_LINE_H
#define DAEMON_LAST_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

/* The most that is kept of a line; the rest of it is not looked at. */
enum { LAST_LINE_MAX = 200 };

struct last_line {
    char bytes[LAST_LINE_MAX];
    size_t length;
    bool is_over; /* the line has ended: the next one with something in it takes its place */
};

/* Takes in what was printed. */
void last_line_add(struct last_line *line, const char *bytes, size_t length);

/* Appends the line, inert and without blanks at its end. */
void last_line_append(const struct last_line *line, struct text *out);

#endif
