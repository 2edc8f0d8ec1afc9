/* SPDX-License-Identifier: Apache-2.0
 *
 * Bars, sparklines and charts.
 */
#include <string.h>

#include "base/count.h"
#include "base/text/utf8.h"
#include "top/draw_internal.h"

enum {
    CHART_MIN = 22, /* columns */
    CHART_GAP = 2,
    CHART_HEIGHT_MIN = 5,
    LEVELS = 8, /* heights of a block character */
};

static const uint32_t blocks[LEVELS + 1] = {' ',    0x2581, 0x2582, 0x2583, 0x2584,
                                            0x2585, 0x2586, 0x2587, 0x2588};
static const char ascii_spark[LEVELS + 1] = " _.:-=+*#";

void draw_append_bar(struct text *out, size_t room, struct optional_number thousandths,
                     const char *words)
{
    size_t filled;

    if (room > 0 && thousandths.known) {
        filled = (room * (thousandths.value > 1000 ? 1000 : thousandths.value) + 500) / 1000;
        text_append_char(out, '[');
        text_append_repeated(out, '|', filled);
        text_append_repeated(out, ' ', room - filled);
        text_append(out, "] ");
    }
    text_append(out, words);
}

/* Returns the index of the character for a load; 0: unknown. */
static int chart_level(int value)
{
    if (value < 0)
        return 0;
    return 1 + (value > 1000 ? 1000 : value) * (LEVELS - 1) / 1000;
}

void draw_append_spark(struct text *out, const struct top_picture *picture, size_t slot,
                       size_t room, bool unicode)
{
    struct device_id id = picture->view->snapshot.slots.items[slot].device->id;
    const struct load_series *series = load_history_find(picture->history, id, slot);

    for (size_t back = room; back-- > 0;) {
        int value =
            load_history_value(picture->history, series, picture->history->step - (int64_t)back);
        int level = chart_level(value);

        if (unicode)
            utf8_append(out, blocks[level]);
        else
            text_append_char(out, ascii_spark[level]);
    }
}

/* Returns the number of devices in the pane. */
static size_t count_devices(const struct top_model *model)
{
    const struct top_list *list = &model->lists[PANE_DEVICES];
    size_t devices = 0;

    for (size_t i = 0; i < list->rows.count; i++)
        devices += !list->rows.items[i].continuation;
    return devices;
}

/* Returns how many charts to draw side by side, at least one. All lines have about the same
 * number. */
static size_t count_abreast(size_t devices, size_t width)
{
    size_t max = (width + CHART_GAP) / (CHART_MIN + CHART_GAP);
    size_t lines;

    if (max == 0)
        max = 1;
    lines = (devices + max - 1) / max;
    return lines == 0 ? 1 : (devices + lines - 1) / lines;
}

size_t draw_chart_lines(const struct top_picture *picture, const struct top_model *model,
                        size_t width)
{
    size_t devices = count_devices(model);
    const struct slot_info *slot;

    if (picture->view == NULL || devices == 0)
        return 0;
    vector_for_each (slot, &picture->view->snapshot.slots) {
        if (slot->device->load.utilization.known)
            return (devices - 1) / count_abreast(devices, width) + 1;
    }
    return 0;
}

/* Draws one column of a chart. */
static void draw_value(struct grid *grid, size_t x, struct layout_band band, int value)
{
    size_t level = value < 0 ? 0 : (size_t)value * band.height * LEVELS / 1000;

    /* A load of 0 is visible, too. */
    if (value >= 0 && level == 0)
        level = 1;
    for (size_t row = 0; row < band.height && level > 0; row++) {
        size_t part = level > LEVELS ? LEVELS : level;

        grid_fill(grid, x, band.y + band.height - 1 - row, 1, STYLE_GOOD,
                  grid->unicode ? blocks[part] : (part > LEVELS / 2 ? '#' : '.'));
        level -= part;
    }
}

static void draw_chart_title(const struct top_picture *picture, const struct slot_info *slot,
                             bool first, size_t x, size_t y, size_t width, struct grid *grid)
{
    const struct figure *load = &slot->device->load.utilization;
    struct text words = {0};
    struct text span = {0};
    size_t used;

    text_append_format(&words, "%s ", device_id_format(slot->device->id).text);
    if (load->known)
        text_append_format(&words, "%lld%% ", (long long)(load->value + 5) / 10);
    else
        text_append(&words, "- ");
    grid_fill(grid, x, y, width, STYLE_FAINT, grid->unicode ? 0x2500 : '-');
    used = grid_put(grid, x, y, width, STYLE_STRONG, text_string(&words));
    text_append_format(&span, " last %s",
                       view_format_duration(0, (int64_t)width * picture->history->interval).text);
    if (first && utf8_width(text_string(&span)) + used + 2 <= width)
        grid_put_right(grid, x + used, y, width - used, STYLE_FAINT, text_string(&span));
    text_finish(&words);
    text_finish(&span);
}

/* Returns how many devices to skip so that the selected one has a chart. */
static size_t first_charted(const struct top_list *list, size_t count)
{
    size_t devices = 0; /* up to the selected row */

    for (size_t i = 0; i <= list->selected_row && i < list->rows.count; i++)
        devices += !list->rows.items[i].continuation;
    return devices == 0 ? 0 : (devices - 1) / count * count;
}

/* Draws one chart with its title. */
static void draw_chart(const struct top_picture *picture, size_t slot, bool first, size_t x,
                       size_t width, struct layout_band band, struct grid *grid)
{
    const struct slot_info *shown = &picture->view->snapshot.slots.items[slot];
    const struct load_series *series = load_history_find(picture->history, shown->device->id, slot);
    struct layout_band area = {.y = band.y + 1, .height = band.height - 1};

    draw_chart_title(picture, shown, first, x, band.y, width, grid);
    for (size_t back = 0; back < width; back++)
        draw_value(
            grid, x + width - 1 - back, area,
            load_history_value(picture->history, series, picture->history->step - (int64_t)back));
}

void draw_charts(const struct top_picture *picture, const struct top_model *model,
                 struct layout_band band, struct grid *grid)
{
    const struct top_list *list = &model->lists[PANE_DEVICES];
    size_t devices = count_devices(model);
    size_t abreast = count_abreast(devices, grid->width);
    size_t lines = draw_chart_lines(picture, model, grid->width);
    size_t width;
    size_t height;
    size_t skipped;

    if (lines == 0)
        return;
    if (lines > band.height / CHART_HEIGHT_MIN)
        lines = band.height < CHART_HEIGHT_MIN ? 1 : band.height / CHART_HEIGHT_MIN;
    width = (grid->width + CHART_GAP) / abreast - CHART_GAP;
    height = band.height / lines;
    skipped = first_charted(list, abreast * lines);
    for (size_t i = 0, drawn = 0; i < list->rows.count && drawn < abreast * lines; i++) {
        struct layout_band place = {.y = band.y + drawn / abreast * height, .height = height};

        if (list->rows.items[i].continuation)
            continue;
        if (skipped > 0) {
            skipped--;
            continue;
        }
        draw_chart(picture, list->rows.items[i].slot, drawn == 0,
                   drawn % abreast * (width + CHART_GAP), width, place, grid);
        drawn++;
    }
}

static const char map_title[] = "load ";

bool draw_has_map(const struct top_picture *picture, const struct top_model *model, size_t width)
{
    return draw_chart_lines(picture, model, width) > 0 &&
           strlen(map_title) + count_devices(model) <= width;
}

void draw_map(const struct top_picture *picture, const struct top_model *model, size_t y,
              struct grid *grid)
{
    const struct top_list *list = &model->lists[PANE_DEVICES];
    size_t x = grid_put(grid, 0, y, grid->width, STYLE_FAINT, map_title);

    for (size_t i = 0; i < list->rows.count; i++) {
        const struct top_row *row = &list->rows.items[i];
        const struct slot_info *slot = &picture->view->snapshot.slots.items[row->slot];
        const struct figure *load = &slot->device->load.utilization;
        int level = load->known ? chart_level((int)load->value) : 0;

        if (row->continuation)
            continue;
        grid_fill(grid, x, y, 1, view_state_style(slot->state),
                  level == 0      ? '-'
                  : grid->unicode ? blocks[level]
                                  : (uint32_t)ascii_spark[level]);
        if (i == list->selected_row)
            grid_reverse(grid, x, y, 1);
        x++;
    }
}
