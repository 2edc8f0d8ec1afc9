/* SPDX-License-Identifier: Apache-2.0
 *
 * What the place we print to can show. Reads the environment and asks the descriptor; never
 * blocks. Not for use while another thread changes the environment.
 */
#ifndef BASE_TEXT_TERMINAL_H
#define BASE_TEXT_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

struct terminal {
    size_t width; /* columns to fill; 0: no limit */
    bool colour;
    bool unicode;
};

/* `width`: COLUMNS when it is exported and a positive number, else the terminal's own, else 80 on
 * a terminal that does not know, else no limit; a width above 10000 does not count. `colour`: a
 * terminal, NO_COLOR empty or unset and TERM not "dumb". `unicode`: the first of LC_ALL, LC_CTYPE,
 * LANG that is set and not empty names UTF-8. */
struct terminal terminal_detect(int descriptor);

enum style {
    STYLE_PLAIN,
    STYLE_STRONG,
    STYLE_FAINT,
    STYLE_GOOD,
    STYLE_WARNING,
    STYLE_BAD,
};

/* The escape sequence that starts a style; "" for STYLE_PLAIN. */
const char *terminal_style_start(enum style style);

/* The escape sequence that ends every style. */
const char *terminal_style_end(void);

#endif
