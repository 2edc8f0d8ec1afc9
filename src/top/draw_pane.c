/* SPDX-License-Identifier: Apache-2.0
 *
 * A pane: its title, and the visible part of its table.
 */
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"
#include "top/draw_internal.h"

/* Up to this many rows are measured, so that columns do not move while the user scrolls. */
enum { MEASURED = 512 };

/* Columns from the start of the state to the note after it: "time-slice" and two blanks. */
enum { NOTE_DISTANCE = 12 };

static const struct pane_kind *const kinds[PANE_COUNT] = {
    [PANE_DEVICES] = &pane_devices,
    [PANE_LEASES] = &pane_leases,
    [PANE_QUEUE] = &pane_queue,
};

/* Appends "1 Devices 8", or "1 Devices 3 of 8" if the filter hides the rest. */
static void append_label(struct text *out, const struct top_model *model, int pane)
{
    const struct top_list *list = &model->lists[pane];
    size_t count = 0;

    for (size_t i = 0; i < list->rows.count; i++)
        count += !list->rows.items[i].continuation;
    text_append_format(out, "%d %s ", pane + 1, kinds[pane]->title);
    if (count != list->total)
        text_append_format(out, "%zu of ", count);
    text_append_format(out, "%zu", list->total);
}

/* Draws the names of panes, the active one reversed. Returns the columns used. */
static size_t draw_labels(const struct top_model *model, enum top_pane pane, size_t y, bool alone,
                          struct grid *grid)
{
    size_t x = 0;

    for (int each = 0; each < PANE_COUNT; each++) {
        struct text label = {0};
        size_t width;

        if (each != (int)pane && !alone)
            continue;
        text_append_char(&label, ' ');
        append_label(&label, model, each);
        text_append_char(&label, ' ');
        width =
            grid_put(grid, x, y, grid->width - x,
                     each == (int)model->pane ? STYLE_STRONG : STYLE_PLAIN, text_string(&label));
        if (each == (int)model->pane)
            grid_reverse(grid, x, y, width);
        x += width;
        text_finish(&label);
    }
    return x;
}

/* Appends the order, such as "by load, descending", and which rows are shown if not all are. */
static void describe_rows(const struct top_model *model, enum top_pane pane, struct text *out)
{
    const struct top_list *list = &model->lists[pane];
    bool falling = top_model_is_column_descending(list->column) != list->reversed;
    size_t last = list->first + list->page;

    if (list->rows.count > list->page && list->page > 0)
        text_append_format(out, " %zu-%zu of %zu ", list->first + 1,
                           last > list->rows.count ? list->rows.count : last, list->rows.count);
    if (pane == model->pane && model->filter[0] != '\0')
        text_append_format(out, " with '%s' ", model->filter);
    if (pane == model->pane)
        text_append_format(out, " by %s%s ", choice_name(view_column_names, (int)list->column),
                           falling ? ", descending" : "");
}

static void draw_title(const struct top_model *model, enum top_pane pane, size_t y, bool alone,
                       struct grid *grid)
{
    struct text words = {0};
    size_t used;

    grid_fill(grid, 0, y, grid->width, STYLE_FAINT, grid->unicode ? 0x2500 : '-');
    used = draw_labels(model, pane, y, alone, grid);
    describe_rows(model, pane, &words);
    if (used + 1 + utf8_width(text_string(&words)) <= grid->width)
        grid_put_right(grid, used, y, grid->width - used, STYLE_FAINT, text_string(&words));
    text_finish(&words);
}

/* Copies the columns, with a mark at the one that rows are sorted by. */
static void mark_columns(const struct pane_kind *kind, const struct top_list *list, bool unicode,
                         struct table_column *columns, char *heading, size_t size)
{
    bool falling = top_model_is_column_descending(list->column) != list->reversed;

    for (size_t i = 0; i < kind->column_count; i++) {
        columns[i] = kind->columns[i].table;
        if (kind->columns[i].column != list->column)
            continue;
        if (unicode)
            snprintf(heading, size, "%s%s", columns[i].heading, falling ? "▼" : "▲");
        else
            snprintf(heading, size, "%s%c", columns[i].heading, falling ? 'v' : '^');
        columns[i].heading = heading;
    }
}

/* Returns how many rows of a band the headings take: none if it has only one row. */
static size_t heading_rows(struct layout_band band)
{
    return band.height > 1 ? 1 : 0;
}

/* Puts the lines of a printed table on the grid: the headings, and the rows after `skipped`. */
static void put_lines(const char *lines, size_t skipped, struct layout_band band, struct grid *grid)
{
    size_t line = 0;

    for (size_t row = 0; *lines != '\0' && row < band.height; line++) {
        size_t length = strcspn(lines, "\n");

        if (line == 0 ? heading_rows(band) > 0 : line > skipped)
            grid_put_styled(grid, 0, band.y + row++, grid->width, lines, length);
        lines += length + (lines[length] == '\n');
    }
}

/* Returns the column where a heading begins; the width of the grid if it is not shown. */
static size_t find_heading(const struct grid *grid, size_t y, const char *heading)
{
    const struct grid_cell *cells = &grid->cells[y * grid->width];
    size_t length = strlen(heading);

    for (size_t x = 0; y < grid->height && x + length <= grid->width; x++) {
        size_t same = 0;

        while (same < length && cells[x + same].character == (unsigned char)heading[same])
            same++;
        if (same == length)
            return x;
    }
    return grid->width;
}

/* Returns the column after the last character of a row. */
static size_t find_end(const struct grid *grid, size_t y)
{
    size_t x = grid->width;

    while (x > 0 && grid->cells[y * grid->width + x - 1].character == ' ')
        x--;
    return x;
}

/* Draws the notes of the visible rows, each after the last cell of its row. Returns false if memory
 * ran out. */
static bool draw_notes(const struct top_picture *picture, const struct pane_kind *kind,
                       const struct top_list *list, struct layout_band band, struct grid *grid)
{
    size_t min = find_heading(grid, band.y, kind->note_after) + NOTE_DISTANCE;
    bool failed = false;

    for (size_t row = 1; row < band.height && list->first + row - 1 < list->rows.count; row++) {
        struct text note = {0};
        size_t x;

        kind->append_note(&note, picture, &list->rows.items[list->first + row - 1]);
        x = find_end(grid, band.y + row) + 2;
        x = x < min ? min : x;
        if (x < grid->width)
            grid_put(grid, x, band.y + row, grid->width - x, STYLE_WARNING, text_string(&note));
        failed |= text_failed(&note);
        text_finish(&note);
    }
    return !failed;
}

static struct pane_facts find_facts(const struct pool_view *view, const struct grid *grid)
{
    struct pane_facts facts = {
        .width = grid->width, .unicode = grid->unicode, .leases = view->snapshot.leases.count > 0};
    const struct lease_info *lease;
    const struct slot_info *slot;

    vector_for_each (slot, &view->snapshot.slots)
        facts.memory |= view_memory_used(slot->device).known;
    vector_for_each (lease, &view->snapshot.leases) {
        facts.shares |= lease->sharing != SHARING_EXCLUSIVE;
        facts.limits |= lease->expires.known;
    }
    return facts;
}

/* Draws the headings and rows. */
static int draw_rows(const struct top_picture *picture, const struct pane_kind *kind,
                     const struct top_list *list, struct layout_band band, struct grid *grid)
{
    struct terminal terminal = {.width = grid->width, .colour = true, .unicode = grid->unicode};
    struct pane_facts facts = find_facts(picture->view, grid);
    bool all = list->rows.count <= MEASURED;
    size_t from = all ? 0 : list->first;
    size_t to = all ? list->rows.count : list->first + list->page;
    struct table_column columns[PANE_COLUMNS_MAX];
    struct text lines = {0};
    struct table table;
    char heading[32];
    int code;

    mark_columns(kind, list, grid->unicode, columns, heading, sizeof(heading));
    table_init(&table, columns, kind->column_count);
    for (size_t i = from; i < to && i < list->rows.count; i++)
        kind->add(&table, picture, &list->rows.items[i], &facts);
    code = table_print(&table, &terminal, &lines);
    if (text_failed(&lines))
        code = BERTH_ERROR_MEMORY;
    put_lines(text_string(&lines), list->first - from, band, grid);
    if (heading_rows(band) > 0)
        grid_restyle(grid, 0, band.y, grid->width, STYLE_STRONG);
    if (kind->append_note != NULL && !draw_notes(picture, kind, list, band, grid))
        code = BERTH_ERROR_MEMORY;
    text_finish(&lines);
    table_finish(&table);
    return code;
}

int draw_pane(const struct top_picture *picture, struct top_model *model, enum top_pane pane,
              struct layout_band band, bool alone, struct grid *grid)
{
    struct top_list *list = &model->lists[pane];
    struct layout_band below = {.y = band.y + 1, .height = band.height - 1};
    int code;

    if (band.height == 0)
        return 0;
    /* A band of fewer than 3 rows has no title. */
    if (band.height < 3)
        below = band;
    top_model_scroll(list, below.height > 1 ? below.height - 1 : 1);
    if (band.height >= 3 || list->rows.count == 0)
        draw_title(model, pane, band.y, alone, grid);
    if (list->rows.count == 0) {
        if (band.height > 1)
            grid_put(grid, 1, band.y + 1, grid->width - 1, STYLE_FAINT,
                     list->total > 0 ? "no row matches the filter" : kinds[pane]->nothing);
        return 0;
    }
    code = draw_rows(picture, kinds[pane], list, below, grid);
    if (pane == model->pane)
        grid_reverse(grid, 0, below.y + heading_rows(below) + list->selected_row - list->first,
                     grid->width);
    return code;
}
