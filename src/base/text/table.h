/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables with aligned columns for terminals of any width.
 *
 * A column has a heading, an alignment and a priority. A table that is wider than the terminal is
 * made narrower in steps: first the cells of the widest column that has a `min` are cut, with a
 * mark, but never below `min`; when no column can be cut further, the column with the lowest
 * priority is left out (the rightmost of equal ones), and so on. Columns with the priority
 * TABLE_ALWAYS stay, even when the lines are too long then. Headings are cut like cells. Cells are
 * made inert (utf8.h) and measured in terminal columns.
 *
 * A cell that is NULL means unknown, and is shown as "-". A column with `hide_unknown` whose cells
 * are all unknown is left out. Lines have no trailing spaces; neither have cells. When no column is
 * left, nothing is printed.
 */
#ifndef BASE_TEXT_TABLE_H
#define BASE_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/terminal.h"
#include "base/text/text.h"
#include "base/vector.h"

#define TABLE_ALWAYS 255

struct table_column {
    const char *heading;
    bool right;             /* align to the right, for numbers */
    bool hide_unknown;      /* leave the column out when all cells are unknown */
    unsigned min;           /* the column may be cut to this width; 0: never cut */
    unsigned char priority; /* the lowest is left out first; TABLE_ALWAYS: never */
};

struct table_cell {
    char *text; /* NULL: unknown */
    enum style style;
};

struct table {
    const struct table_column *columns; /* the caller's, usually static */
    size_t column_count;
    VECTOR_OF(struct table_cell); /* row after row */
    bool failed;
};

void table_init(struct table *table, const struct table_column *columns, size_t column_count);
void table_finish(struct table *table);

/* Add the next cell, row by row from the left. The text is copied. table_print reports a failed
 * allocation. */
void table_cell(struct table *table, const char *text);
void table_cell_styled(struct table *table, enum style style, const char *text);
void table_cell_format(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends the headings, faint if the terminal has colours, and all rows to `out`. The last row must
 * be complete (assert). Returns 0, or BERTH_ERROR_MEMORY, also when adding a cell failed; `out` may
 * have a part of the table then. */
int table_print(const struct table *table, const struct terminal *terminal, struct text *out);

#endif
