/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole screen: the header, a note below it, charts, panes, details and the footer.
 */
#include "top/draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/count.h"
#include "base/text/utf8.h"
#include "top/draw_internal.h"

/* The title and the last line of the help; and how many columns must stay visible beside it. */
enum { HELP_FRAME = 2, HELP_BESIDE = 16 };

static const char *const help_lines[] = {
    "Up Down j k         select the row above or below",
    "PgUp PgDn Home End  select further away",
    "Tab 1 2 3           go to devices, leases, queue",
    "s or >, <           sort by the next column, or the one before",
    "r                   reverse the order",
    "/                   show only rows with these words: user, name, id, state",
    "Esc                 show all rows again",
    "x                   release the selected lease (asks first)",
    "c                   cancel the selected claim (asks first)",
    "p or Space          pause or continue",
    "Ctrl-L              redraw the screen",
    "h ?                 this help",
    "q Ctrl-C            quit",
    "",
    "[|||   ] 45% is the load now, HISTORY the load before.",
    "- means unknown.",
};

size_t draw_help_first(size_t wanted, size_t height)
{
    size_t shown = height > HELP_FRAME ? height - HELP_FRAME : 1;
    size_t max = COUNT(help_lines) > shown ? COUNT(help_lines) - shown : 0;

    return wanted > max ? max : wanted;
}

struct quantity_text draw_clock(int64_t time)
{
    time_t seconds = (time_t)(time / DURATION_SECOND);
    struct quantity_text clock = {.text = ""};
    struct tm parts;

    if (localtime_r(&seconds, &parts) != NULL)
        strftime(clock.text, sizeof(clock.text), "%H:%M:%S", &parts);
    return clock;
}

/* Appends the counts of devices. `brief` is for narrow screens. */
static void append_counts(struct text *out, struct view_census census, bool brief)
{
    if (brief) {
        text_append_format(out, "%zu/%zu free", census.free, census.devices);
        return;
    }
    text_append_format(out, "%zu device%s: %zu free, %zu leased", census.devices,
                       census.devices == 1 ? "" : "s", census.free, census.leased);
    if (census.shared > 0)
        text_append_format(out, ", %zu shared", census.shared);
    if (census.others > 0)
        text_append_format(out, ", %zu out of use", census.others);
}

static void append_waiting(struct text *out, uint32_t count, bool brief)
{
    if (count == 0)
        text_append(out, brief ? "" : ", nobody waits");
    else
        text_append_format(out, ", %" PRIu32 "%s", count, brief ? " wait" : " waiting");
}

/* Appends the name of the pool. Shortens a path that does not fit to its last part. Appends nothing
 * if that does not fit either. */
static void append_pool(const struct top_picture *picture, const struct grid *grid, size_t room,
                        struct text *out)
{
    struct text pool = {0};
    const char *path;
    const char *name;

    view_append_pool_name(picture->view, picture->address, &pool);
    path = strchr(text_string(&pool), '/');
    name = strrchr(text_string(&pool), '/');
    text_append(out, text_string(&pool));
    for (int tries = 0; tries < 2 && path != NULL && utf8_width(text_string(out)) > room; tries++) {
        text_clear(out);
        if (tries == 0)
            text_append_bytes(out, text_string(&pool), (size_t)(path - text_string(&pool)));
        text_append(out, grid->unicode ? "…" : "~");
        text_append(out, name);
    }
    if (utf8_width(text_string(out)) > room)
        text_clear(out);
    out->failed |= pool.failed;
    text_finish(&pool);
}

/* Draws the counts, the clock and the pool, each only if it fits. */
static void draw_header(const struct top_picture *picture, size_t y, struct grid *grid)
{
    struct view_census census = view_count_devices(picture->view);
    struct quantity_text clock = draw_clock(picture->now);
    size_t room = grid->width;
    struct text counts = {0};
    struct text pool = {0};
    size_t used;

    for (int brief = 0; brief < 2; brief++) {
        text_clear(&counts);
        append_counts(&counts, census, brief == 1);
        append_waiting(&counts, picture->view->snapshot.pending, brief == 1);
        if (utf8_width(text_string(&counts)) + strlen(clock.text) + 2 <= room)
            break;
    }
    used = grid_put(grid, 0, y, room, STYLE_STRONG, text_string(&counts)) + 2;
    if (used + strlen(clock.text) <= room) {
        grid_put_right(grid, used, y, room - used, STYLE_PLAIN, clock.text);
        room -= strlen(clock.text) + 2;
    }
    append_pool(picture, grid, used < room ? room - used : 0, &pool);
    grid_put(grid, used, y, grid->width, STYLE_FAINT, text_string(&pool));
    text_finish(&counts);
    text_finish(&pool);
}

/* Appends a note about the whole screen: paused, old, or problems. Appends nothing for a live view
 * without problems. */
static enum style append_note(const struct top_picture *picture, struct text *out)
{
    const struct problem_list *problems = &picture->view->snapshot.problems;
    struct quantity_text clock = draw_clock(picture->now);

    if (picture->paused) {
        text_append_format(out, "paused at %s: p continues", clock.text);
        return STYLE_STRONG;
    }
    if (picture->state == FOLLOWER_SILENT)
        text_append_format(out, "as of %s: %s", clock.text, picture->reason);
    else if (picture->state == FOLLOWER_GONE)
        text_append_format(out, "as of %s: the daemon is gone, reconnecting", clock.text);
    if (picture->state == FOLLOWER_GONE && picture->reason != NULL && picture->reason[0] != '\0')
        text_append_format(out, " (%s)", picture->reason);
    if (picture->state != FOLLOWER_LIVE)
        return STYLE_BAD;
    if (problems->count > 0)
        text_append_format(out, "%s: %s", problems->items[0].backend, problems->items[0].message);
    if (problems->count > 1)
        text_append_format(out, " (and %zu more)", problems->count - 1);
    return STYLE_WARNING;
}

/* Draws the end of a text that is too long, after a mark. */
static void draw_text_end(struct grid *grid, size_t y, enum style style, const char *words)
{
    size_t length = strlen(words);
    size_t width = utf8_width(words);
    uint32_t character;
    size_t i = 0;

    while (i < length && width >= grid->width) {
        i += utf8_decode_inert(words + i, length - i, &character);
        width -= utf8_character_width(character);
    }
    grid_put(grid, 0, y, 1, style, grid->unicode ? "…" : "~");
    grid_put(grid, 1, y, grid->width - 1, style, words + i);
}

static void draw_prompt(const struct top_picture *picture, size_t y, struct grid *grid)
{
    grid_fill(grid, 0, y, grid->width, STYLE_STRONG, ' ');
    if (picture->typing && utf8_width(picture->prompt) > grid->width)
        draw_text_end(grid, y, STYLE_STRONG, picture->prompt);
    else
        grid_put(grid, 0, y, grid->width, STYLE_STRONG, picture->prompt);
    grid_reverse(grid, 0, y, grid->width);
}

static void draw_footer(const struct top_picture *picture, size_t y, struct grid *grid)
{
    /* Keys that do not fit are left out from the right. */
    static const char *const keys[] = {"q quit",   "h help",  "Tab pane",  "s sort",
                                       "/ filter", "p pause", "x release", "c cancel"};
    size_t x = 0;

    if (picture->prompt != NULL) {
        draw_prompt(picture, y, grid);
    } else if (picture->message != NULL) {
        grid_fill(grid, 0, y, grid->width, STYLE_PLAIN, ' ');
        grid_put(grid, 0, y, grid->width, picture->message_style, picture->message);
    } else {
        for (size_t i = 0; i < COUNT(keys) && x + strlen(keys[i]) <= grid->width; i++) {
            grid_put(grid, x, y, grid->width - x, STYLE_FAINT, keys[i]);
            x += strlen(keys[i]) + 2;
        }
    }
}

static void draw_help(const struct top_picture *picture, struct grid *grid)
{
    size_t height = COUNT(help_lines) + HELP_FRAME;
    size_t width = 0;
    size_t x;
    size_t y;

    for (size_t i = 0; i < COUNT(help_lines); i++) {
        if (strlen(help_lines[i]) + 4 > width)
            width = strlen(help_lines[i]) + 4;
    }
    /* A narrow strip beside the help would be unreadable: cover it. */
    if (width + HELP_BESIDE > grid->width)
        width = grid->width;
    height = height > grid->height ? grid->height : height;
    x = (grid->width - width) / 2;
    y = (grid->height - height) / 2;
    for (size_t row = 0; row < height; row++) {
        size_t line = picture->help_first + row - 1;

        grid_fill(grid, x, y + row, width, STYLE_PLAIN, ' ');
        if (row == 0 || row + 1 == height)
            grid_reverse(grid, x, y + row, width);
        else if (line < COUNT(help_lines))
            grid_put(grid, x + 2, y + row, width < 2 ? 0 : width - 2, STYLE_PLAIN,
                     help_lines[line]);
    }
    grid_put(grid, x, y, width, STYLE_STRONG, "  berth top: keys");
    grid_put(grid, x, y + height - 1, width, STYLE_STRONG,
             height < COUNT(help_lines) + HELP_FRAME ? "  Up Down: more  any other key: back"
                                                     : "  any key: back");
}

/* Returns how many bytes fit into a line: whole words, or a part of a word that is too long. */
static size_t measure_line(const char *words, size_t width)
{
    size_t length = strlen(words);
    size_t used = 0;
    size_t blank = 0;

    for (size_t i = 0; i < length;) {
        uint32_t character;
        size_t taken = utf8_decode_inert(words + i, length - i, &character);

        used += utf8_character_width(character);
        if (used > width)
            return blank > 0 ? blank : i;
        i += taken;
        if (character == ' ')
            blank = i;
    }
    return length;
}

/* Draws details of the selected row above the footer. */
static void draw_detail(const struct top_picture *picture, const struct top_model *model,
                        struct layout_band band, struct grid *grid)
{
    struct text words = {0};
    size_t taken = 0;

    draw_append_detail(picture, model, &words);
    for (size_t row = 0; row < band.height && taken < words.length; row++) {
        bool last = row + 1 == band.height;
        size_t length =
            last ? words.length - taken : measure_line(text_string(&words) + taken, grid->width);
        char *line = strndup(text_string(&words) + taken, length);

        if (line == NULL)
            break;
        grid_put(grid, 0, band.y + row, grid->width, STYLE_FAINT, line);
        free(line);
        taken += length;
    }
    text_finish(&words);
}

/* Draws the map, the charts and the panes. */
static int draw_body(const struct top_picture *picture, struct top_model *model,
                     const struct layout *layout, struct grid *grid)
{
    size_t shown = 0;
    int code = 0;

    for (int pane = 0; pane < PANE_COUNT; pane++)
        shown += layout->panes[pane].height > 0;
    if (layout->map.height > 0)
        draw_map(picture, model, layout->map.y, grid);
    if (layout->charts.height > 0)
        draw_charts(picture, model, layout->charts, grid);
    for (int pane = 0; pane < PANE_COUNT && code == 0; pane++)
        code = draw_pane(picture, model, pane, layout->panes[pane], shown == 1, grid);
    return code;
}

int draw(const struct top_picture *picture, struct top_model *model, struct grid *grid)
{
    struct layout_input input = {
        .height = grid->height, .pane = model->pane, .detail = picture->view != NULL};
    struct text note = {0};
    struct layout layout;
    enum style style;
    int code;

    if (picture->view == NULL) {
        grid_put(grid, 0, 0, grid->width, STYLE_PLAIN, "reading the pool");
        return 0;
    }
    style = append_note(picture, &note);
    input.notes = note.length > 0;
    for (int pane = 0; pane < PANE_COUNT; pane++)
        input.rows[pane] = model->lists[pane].rows.count;
    input.charts = draw_chart_lines(picture, model, grid->width);
    input.map = draw_has_map(picture, model, grid->width);
    layout = layout_compute(&input);
    code = draw_body(picture, model, &layout, grid);
    if (layout.header.height > 0)
        draw_header(picture, layout.header.y, grid);
    if (layout.note.height > 0) {
        grid_put(grid, 0, layout.note.y, grid->width, style, text_string(&note));
        grid_reverse(grid, 0, layout.note.y, grid->width);
    }
    draw_detail(picture, model, layout.detail, grid);
    if (picture->help)
        draw_help(picture, grid);
    /* Prompts and messages are shown even on a low screen. The keys are hidden while the help is
     * open. */
    if ((layout.footer.height > 0 && !picture->help) || picture->prompt != NULL ||
        picture->message != NULL)
        draw_footer(picture, grid->height - 1, grid);
    if (text_failed(&note))
        code = BERTH_ERROR_MEMORY;
    text_finish(&note);
    return code;
}
