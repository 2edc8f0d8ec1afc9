/* SPDX-License-Identifier: Apache-2.0
 *
 * A screen full of character cells, before anybody shows it. Whatever text is put on it stays
 * within the columns that it was given, and cannot steer a terminal. Zeroed memory is a grid
 * without cells. Not for use by two threads at once.
 */
#ifndef TOP_GRID_H
#define TOP_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/terminal.h"
#include "base/text/text.h"

/* Marks that are kept with a character; more are left out. */
#define GRID_MARKS_MAX 3
/* A terminal with more columns or rows than this is drawn on in part. */
#define GRID_SIDE_MAX 1000

struct grid_cell {
    uint32_t character; /* 0: the right half of the one before */
    uint32_t marks[GRID_MARKS_MAX];
    enum style style;
    bool reverse;
};

struct grid {
    size_t width;
    size_t height;
    bool unicode; /* else what is not ASCII comes out as '?' */
    struct grid_cell *cells;
};

/* Blanks it, at this size. Fails with BERTH_ERROR_MEMORY; the grid is as before then. */
int grid_start(struct grid *grid, size_t width, size_t height, bool unicode);
void grid_finish(struct grid *grid);

/* Puts a line of text at a place, in at most `room` columns; what is longer ends with a mark.
 * Returns the columns that it took. What is beside the grid is left out. */
size_t grid_put(struct grid *grid, size_t x, size_t y, size_t room, enum style style,
                const char *line);

/* The same at the end of the room. */
size_t grid_put_right(struct grid *grid, size_t x, size_t y, size_t room, enum style style,
                      const char *line);

/* The same for a line of our own making, of up to `length` bytes, with terminal_style_start and
 * terminal_style_end in it: base/text/table.h writes such. */
void grid_put_styled(struct grid *grid, size_t x, size_t y, size_t room, const char *line,
                     size_t length);

/* Puts one character so many times from there to the right. */
void grid_fill(struct grid *grid, size_t x, size_t y, size_t count, enum style style,
               uint32_t character);

/* Changes how cells look that are there. */
void grid_restyle(struct grid *grid, size_t x, size_t y, size_t count, enum style style);
void grid_reverse(struct grid *grid, size_t x, size_t y, size_t count);

/* Appends a row as text, without blanks at its end. */
void grid_append_row(const struct grid *grid, size_t y, struct text *out);

#endif
