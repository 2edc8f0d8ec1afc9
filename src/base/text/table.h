/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for people: columns that line up whatever is in them, at any width.
 *
 * A table has columns with a heading, an alignment and a priority. When it is wider than the
 * terminal, cells of shrinkable columns are cut (with a mark), the widest first and never below
 * their `least` width; if that is not enough, the column with the lowest priority (of equals, the
 * rightmost) is left out, and so on. Columns of priority TABLE_ALWAYS stay; what then still does
 * not fit is printed over-long. Headings are cut like cells. Cells are made inert (utf8.h) and
 * measured in terminal columns.
 *
 * Unknown is a value: a cell set to NULL shows as "-", and a column that has cells, but only
 * unknown ones, is not shown when it is marked `hide_unknown`. Lines carry no trailing spaces; a
 * cell loses those at its end. When no column is left, nothing is printed.
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
    bool hide_unknown;      /* leave the column out when nothing is known in it */
    unsigned min;           /* may be cut down to this width; 0: never cut */
    unsigned char priority; /* lowest is left out first; TABLE_ALWAYS: never */
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

/* Adds the next cell, row by row from the left; the text is copied. NULL is unknown. A failed
 * allocation is remembered and reported by table_print. */
void table_cell(struct table *table, const char *text);
void table_cell_styled(struct table *table, enum style style, const char *text);
void table_cell_format(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends the whole table, headings first (STYLE_FAINT headings when the terminal has colour), to
 * `out`; without rows only the headings. The rows must be complete (assert). Returns 0 or
 * BERTH_ERROR_MEMORY, also when an earlier cell failed; then `out` may hold a part. */
int table_print(const struct table *table, const struct terminal *terminal, struct text *out);

#endif
