/* SPDX-License-Identifier: Apache-2.0
 *
 * A screen of character cells in memory. Text stays within the columns that it was given, and
 * control characters never reach the terminal. Zeroed memory is a grid without cells. Not
 * thread-safe.
 */
#ifndef TOP_GRID_H
#define TOP_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/terminal.h"
#include "base/text/text.h"

/* The combining marks that are kept with a character; more are dropped. */
#define GRID_MARKS_MAX 3
/* Columns and rows beyond this are not drawn. */
#define GRID_SIDE_MAX 1000

struct grid_cell {
    uint32_t character; /* 0: the right half of a wide character */
    uint32_t marks[GRID_MARKS_MAX];
    enum style style;
    bool reverse;
};

struct grid {
    size_t width;
    size_t height;
    bool unicode; /* else other characters than ASCII become '?' */
    struct grid_cell *cells;
};

/* Clears the grid and sets its size. Fails with BERTH_ERROR_MEMORY; the grid is unchanged then. */
int grid_start(struct grid *grid, size_t width, size_t height, bool unicode);
void grid_finish(struct grid *grid);

/* Puts a line of text at (x, y) in at most `room` columns; a longer text ends with a mark. Nothing
 * is put outside the grid. Returns the columns used. */
size_t grid_put(struct grid *grid, size_t x, size_t y, size_t room, enum style style,
                const char *line);

/* Puts a line of text at the right end of the room. */
size_t grid_put_right(struct grid *grid, size_t x, size_t y, size_t room, enum style style,
                      const char *line);

/* Puts a line of `length` bytes that may contain terminal_style_start() and terminal_style_end(),
 * as base/text/table.h writes them. The line must come from this program. */
void grid_put_styled(struct grid *grid, size_t x, size_t y, size_t room, const char *line,
                     size_t length);

/* Puts one character `count` times, from (x, y) to the right. */
void grid_fill(struct grid *grid, size_t x, size_t y, size_t count, enum style style,
               uint32_t character);

/* Change the style of cells. */
void grid_restyle(struct grid *grid, size_t x, size_t y, size_t count, enum style style);
void grid_reverse(struct grid *grid, size_t x, size_t y, size_t count);

/* Appends a row as text, without trailing blanks. */
void grid_append_row(const struct grid *grid, size_t y, struct text *out);

#endif
