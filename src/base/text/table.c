/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/table.h"

#include <assert.h>
#include <berth/error.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/truncate.h"
#include "base/text/utf8.h"

enum { GAP = 2 };

static const char unknown[] = "-";

/* The layout of a column. */
struct column_layout {
    bool shown;
    size_t width;
};

void table_init(struct table *table, const struct table_column *columns, size_t column_count)
{
    assert(column_count > 0);
    *table = (struct table){.columns = columns, .column_count = column_count};
}

void table_finish(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->items[i].text);
    vector_finish(table);
}

/* Adds a cell that owns `text`, which may be NULL. */
static void add_cell(struct table *table, enum style style, char *text)
{
    struct table_cell *cell = vector_append(table);

    if (cell == NULL) {
        table->failed = true;
        free(text);
        return;
    }
    *cell = (struct table_cell){.text = text, .style = style};
}

/* Adds a cell that owns `text`. NULL means that its allocation failed. */
static void add_allocated_cell(struct table *table, enum style style, char *text)
{
    if (text == NULL) {
        table->failed = true;
        return;
    }
    /* Trailing blanks of a cell could become trailing blanks of the line. */
    for (size_t length = strlen(text); length > 0 && text[length - 1] == ' '; length--)
        text[length - 1] = '\0';
    add_cell(table, style, text);
}

void table_cell_styled(struct table *table, enum style style, const char *text)
{
    if (text == NULL)
        add_cell(table, style, NULL);
    else
        add_allocated_cell(table, style, strdup(text));
}

void table_cell(struct table *table, const char *text)
{
    table_cell_styled(table, STYLE_PLAIN, text);
}

void table_cell_format(struct table *table, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    add_allocated_cell(table, STYLE_PLAIN, text);
}

static const char *cell_text(const struct table_cell *cell)
{
    return cell->text == NULL ? unknown : cell->text;
}

/* Returns the column's layout when the width is not limited. */
static struct column_layout measure_column(const struct table *table, size_t column)
{
    struct column_layout layout = {.shown =
                                       table->count == 0 || !table->columns[column].hide_unknown,
                                   .width = utf8_width(table->columns[column].heading)};

    for (size_t i = column; i < table->count; i += table->column_count) {
        size_t width = utf8_width(cell_text(&table->items[i]));

        if (width > layout.width)
            layout.width = width;
        if (table->items[i].text != NULL)
            layout.shown = true;
    }
    return layout;
}

/* Returns the column's minimum width. */
static size_t min_width(const struct table_column *column, const struct column_layout *layout)
{
    return column->min == 0 || column->min > layout->width ? layout->width : column->min;
}

static size_t total_width(const struct table *table, const struct column_layout *layouts, bool min)
{
    size_t total = 0;
    size_t gap = 0;

    for (size_t i = 0; i < table->column_count; i++) {
        if (!layouts[i].shown)
            continue;
        total += gap;
        total += min ? min_width(&table->columns[i], &layouts[i]) : layouts[i].width;
        gap = GAP;
    }
    return total;
}

/* Leaves out the column with the lowest priority. Returns false when all columns must stay. */
static bool drop_column(const struct table *table, struct column_layout *layouts)
{
    struct column_layout *min = NULL;
    unsigned char priority = TABLE_ALWAYS;

    for (size_t i = table->column_count; i-- > 0;) {
        if (layouts[i].shown && table->columns[i].priority < priority) {
            min = &layouts[i];
            priority = table->columns[i].priority;
        }
    }
    if (min != NULL)
        min->shown = false;
    return min != NULL;
}

/* Reduces by one the width of the widest column that can still be cut. Returns false when there is
 * none. */
static bool narrow_widest_column(const struct table *table, struct column_layout *layouts)
{
    struct column_layout *widest = NULL;

    for (size_t i = table->column_count; i-- > 0;) {
        if (layouts[i].shown && layouts[i].width > min_width(&table->columns[i], &layouts[i]) &&
            (widest == NULL || layouts[i].width > widest->width))
            widest = &layouts[i];
    }
    if (widest != NULL)
        widest->width--;
    return widest != NULL;
}

static void fit_columns(const struct table *table, size_t limit, struct column_layout *layouts)
{
    while (total_width(table, layouts, true) > limit && drop_column(table, layouts))
        ;
    while (total_width(table, layouts, false) > limit && narrow_widest_column(table, layouts))
        ;
}

/* A line of output, written from the left. */
struct line {
    struct text *out;
    const struct terminal *terminal;
    bool started;
    size_t blanks; /* blanks to write before the next text, so that they never end the line */
};

static void append_cell(struct line *line, const char *string, enum style style, bool right,
                        size_t width)
{
    struct truncation piece = truncate_measure(string, width);
    size_t padding = width - piece.width;

    if (line->started)
        line->blanks += GAP;
    line->started = true;
    if (string[0] == '\0') {
        line->blanks += width;
        return;
    }
    if (right)
        line->blanks += padding;
    text_append_repeated(line->out, ' ', line->blanks);
    truncate_append(line->out, string, piece, style, line->terminal);
    line->blanks = right ? 0 : padding;
}

/* Appends one row, or the headings when `cells` is NULL. */
static void append_row(const struct table *table, const struct column_layout *layouts,
                       const struct table_cell *cells, const struct terminal *terminal,
                       struct text *out)
{
    struct line line = {.out = out, .terminal = terminal};

    for (size_t i = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];

        if (!layouts[i].shown)
            continue;
        if (cells == NULL)
            append_cell(&line, column->heading, STYLE_FAINT, column->right, layouts[i].width);
        else
            append_cell(&line, cell_text(&cells[i]), cells[i].style, column->right,
                        layouts[i].width);
    }
    if (line.started)
        text_append_char(out, '\n');
}

int table_print(const struct table *table, const struct terminal *terminal, struct text *out)
{
    struct column_layout *layouts;

    if (table->failed)
        return BERTH_ERROR_MEMORY;
    assert(table->count % table->column_count == 0);
    layouts = calloc(table->column_count, sizeof(*layouts));
    if (layouts == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < table->column_count; i++)
        layouts[i] = measure_column(table, i);
    if (terminal->width > 0)
        fit_columns(table, terminal->width, layouts);
    append_row(table, layouts, NULL, terminal, out);
    for (size_t i = 0; i < table->count; i += table->column_count)
        append_row(table, layouts, &table->items[i], terminal, out);
    free(layouts);
    return text_failed(out) ? BERTH_ERROR_MEMORY : 0;
}
