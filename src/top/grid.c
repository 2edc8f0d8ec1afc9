/* SPDX-License-Identifier: Apache-2.0 */
#include "top/grid.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/text/utf8.h"

int grid_start(struct grid *grid, size_t width, size_t height, bool unicode)
{
    struct grid_cell *cells = grid->cells;

    width = width > GRID_SIDE_MAX ? GRID_SIDE_MAX : width;
    height = height > GRID_SIDE_MAX ? GRID_SIDE_MAX : height;
    if (cells == NULL || width != grid->width || height != grid->height) {
        cells = malloc((width * height + 1) * sizeof(*cells));
        if (cells == NULL)
            return BERTH_ERROR_MEMORY;
        free(grid->cells);
    }
    *grid = (struct grid){.width = width, .height = height, .unicode = unicode, .cells = cells};
    for (size_t i = 0; i < width * height; i++)
        cells[i] = (struct grid_cell){.character = ' '};
    return 0;
}

void grid_finish(struct grid *grid)
{
    free(grid->cells);
    *grid = (struct grid){0};
}

/* Returns the cell; NULL: outside the grid. */
static struct grid_cell *cell_at(const struct grid *grid, size_t x, size_t y)
{
    return x < grid->width && y < grid->height ? &grid->cells[y * grid->width + x] : NULL;
}

/* Blanks the other half of a wide character that is about to be overwritten in part. */
static void split_wide(struct grid *grid, size_t x, size_t y)
{
    struct grid_cell *cell = cell_at(grid, x, y);
    struct grid_cell *after = cell_at(grid, x + 1, y);

    if (cell->character == 0 && x > 0)
        cell[-1].character = ' ';
    if (after != NULL && after->character == 0)
        after->character = ' ';
}

/* A position that moves along one row. */
struct pen {
    struct grid *grid;
    size_t x;
    size_t y;
    size_t end; /* the column after the last one */
    struct grid_cell *last;
};

static struct pen place_pen(struct grid *grid, size_t x, size_t y, size_t room)
{
    size_t end = x > SIZE_MAX - room ? SIZE_MAX : x + room;

    return (struct pen){.grid = grid, .x = x, .y = y, .end = end > grid->width ? grid->width : end};
}

static void add_mark(struct grid_cell *cell, uint32_t mark)
{
    for (size_t i = 0; i < GRID_MARKS_MAX; i++) {
        if (cell->marks[i] == 0) {
            cell->marks[i] = mark;
            return;
        }
    }
}

/* Writes one character. Returns whether it fits. */
static bool write_character(struct pen *pen, enum style style, uint32_t character)
{
    unsigned width = utf8_character_width(character);
    struct grid_cell *cell;

    if (!pen->grid->unicode && character >= 0x80)
        character = '?';
    if (width == 0) {
        if (pen->last != NULL && pen->grid->unicode)
            add_mark(pen->last, character);
        return true;
    }
    cell = cell_at(pen->grid, pen->x, pen->y);
    if (cell == NULL || pen->x + width > pen->end)
        return false;
    for (unsigned i = 0; i < width; i++) {
        split_wide(pen->grid, pen->x + i, pen->y);
        cell[i] = (struct grid_cell){.style = style, .reverse = cell[i].reverse};
        if (i == 0 || !pen->grid->unicode)
            cell[i].character = character;
    }
    pen->last = cell;
    pen->x += width;
    return true;
}

static uint32_t cut_mark(const struct grid *grid)
{
    return grid->unicode ? 0x2026 : '~';
}

size_t grid_put(struct grid *grid, size_t x, size_t y, size_t room, enum style style,
                const char *line)
{
    size_t length = strlen(line);
    struct pen pen = place_pen(grid, x, y, room);
    struct pen before = pen; /* the position for the cut mark */

    if (x >= pen.end || y >= grid->height)
        return 0;
    for (size_t i = 0; i < length;) {
        struct pen here = pen;
        uint32_t character;

        i += utf8_decode_inert(line + i, length - i, &character);
        if (!write_character(&pen, style, character)) {
            pen = here.x < pen.end ? here : before;
            write_character(&pen, style, cut_mark(grid));
            break;
        }
        if (pen.x > here.x)
            before = here;
    }
    return pen.x - x;
}

size_t grid_put_right(struct grid *grid, size_t x, size_t y, size_t room, enum style style,
                      const char *line)
{
    size_t width = utf8_width(line);

    if (width < room)
        x += room - width;
    return grid_put(grid, x, y, width < room ? width : room, style, line);
}

/* Finds the style sequence at the start of the line. Returns its length; 0: there is none. */
static size_t find_style(const char *line, size_t length, enum style *ret_style)
{
    static const enum style styles[] = {STYLE_STRONG, STYLE_FAINT, STYLE_GOOD, STYLE_WARNING,
                                        STYLE_BAD};

    for (size_t i = 0; i < COUNT(styles); i++) {
        const char *start = terminal_style_start(styles[i]);

        if (strlen(start) <= length && memcmp(line, start, strlen(start)) == 0) {
            *ret_style = styles[i];
            return strlen(start);
        }
    }
    if (strlen(terminal_style_end()) <= length &&
        memcmp(line, terminal_style_end(), strlen(terminal_style_end())) == 0) {
        *ret_style = STYLE_PLAIN;
        return strlen(terminal_style_end());
    }
    return 0;
}

void grid_put_styled(struct grid *grid, size_t x, size_t y, size_t room, const char *line,
                     size_t length)
{
    struct pen pen = place_pen(grid, x, y, room);
    enum style style = STYLE_PLAIN;

    for (size_t i = 0; i < length;) {
        size_t taken = line[i] == '\033' ? find_style(line + i, length - i, &style) : 0;
        uint32_t character;

        if (taken > 0) {
            i += taken;
            continue;
        }
        i += utf8_decode_inert(line + i, length - i, &character);
        if (!write_character(&pen, style, character))
            break;
    }
}

void grid_fill(struct grid *grid, size_t x, size_t y, size_t count, enum style style,
               uint32_t character)
{
    struct pen pen = place_pen(grid, x, y, count);

    while (write_character(&pen, style, character))
        ;
}

void grid_restyle(struct grid *grid, size_t x, size_t y, size_t count, enum style style)
{
    struct grid_cell *cell;

    for (size_t i = 0; i < count && (cell = cell_at(grid, x + i, y)) != NULL; i++)
        cell->style = style;
}

void grid_reverse(struct grid *grid, size_t x, size_t y, size_t count)
{
    struct grid_cell *cell;

    for (size_t i = 0; i < count && (cell = cell_at(grid, x + i, y)) != NULL; i++)
        cell->reverse = true;
}

void grid_append_row(const struct grid *grid, size_t y, struct text *out)
{
    size_t blanks = 0;

    for (size_t x = 0; x < grid->width; x++) {
        const struct grid_cell *cell = cell_at(grid, x, y);

        if (cell->character == ' ') {
            blanks++;
            continue;
        }
        if (cell->character == 0)
            continue;
        text_append_repeated(out, ' ', blanks);
        blanks = 0;
        utf8_append(out, cell->character);
        for (size_t i = 0; i < GRID_MARKS_MAX && cell->marks[i] != 0; i++)
            utf8_append(out, cell->marks[i]);
    }
}
