/* SPDX-License-Identifier: Apache-2.0
 *
 * The abilities of the terminal that output goes to. Never blocks. No other thread may change the
 * environment at the same time.
 */
#ifndef BASE_TEXT_TERMINAL_H
#define BASE_TEXT_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

struct terminal {
    size_t width; /* in columns; 0: no limit */
    bool colour;
    bool unicode;
};

/* Detects the abilities of a descriptor.
 *
 *     width    COLUMNS if it is a positive number, else the terminal's width, else 80 on a terminal
 *              without a known width, else no limit. A width above 10000 is ignored.
 *     colour   on a terminal, unless NO_COLOR is set and not empty, or TERM is "dumb"
 *     unicode  the first of LC_ALL, LC_CTYPE and LANG that is set and not empty names UTF-8 */
struct terminal terminal_detect(int descriptor);

/* Returns the sequence that clears the line of the cursor and moves to its start, or "" when the
 * descriptor is not a terminal that can do this. */
const char *terminal_clear_line(int descriptor);

enum style {
    STYLE_PLAIN,
    STYLE_STRONG,
    STYLE_FAINT,
    STYLE_GOOD,
    STYLE_WARNING,
    STYLE_BAD,
};

/* Returns the escape sequence that starts a style, "" for STYLE_PLAIN. */
const char *terminal_style_start(enum style style);

/* Returns the escape sequence that ends every style. */
const char *terminal_style_end(void);

#endif
