/* SPDX-License-Identifier: Apache-2.0 */
#include "top/layout.h"

enum {
    FRAME = 2,       /* title and headings of a pane */
    SEVERAL = 20,    /* the fewest rows of a screen with several panes */
    OTHERS = 4,      /* rows of a pane that keys do not go to, on a small screen */
    OTHERS_PART = 6, /* or 1/OTHERS_PART of the rows, on a large screen */
    CHARTS_MIN = 5,  /* the fewest rows for charts */
    CHART_MAX = 12,  /* the most rows of one line of charts */
    DETAIL = 2,
    DETAIL_MIN = 14, /* the fewest rows of a screen with details */
    MAP_MIN = 10,    /* the fewest rows of a screen with a map of all devices */
    FOOTER_MIN = 5,  /* the fewest rows of a screen with a footer */
};

/* Takes rows from the top of the remaining band. */
static struct layout_band take_rows(struct layout_band *left, size_t height)
{
    struct layout_band band = {.y = left->y, .height = height};

    if (band.height > left->height)
        band.height = left->height;
    left->y += band.height;
    left->height -= band.height;
    return band;
}

/* Returns the rows that a pane needs. An empty pane has a line that says so. */
static size_t rows_needed(const struct layout_input *input, int pane)
{
    return input->rows[pane] == 0 ? FRAME : FRAME + input->rows[pane];
}

/* Divides `room` rows among the panes. Returns the rows that are left over. */
static size_t share_rows(const struct layout_input *input, size_t room, size_t heights[PANE_COUNT])
{
    size_t others = room / OTHERS_PART > OTHERS ? room / OTHERS_PART : OTHERS;
    size_t left = room;

    if (room < SEVERAL - 2) {
        heights[input->pane] = room;
        return 0;
    }
    for (int pane = 0; pane < PANE_COUNT; pane++) {
        size_t need = rows_needed(input, pane);

        heights[pane] = need < others ? need : others;
        left -= heights[pane];
    }
    /* The remaining rows go to the pane that keys go to, then to the others from the top. */
    for (int turn = -1; turn < PANE_COUNT; turn++) {
        int pane = turn < 0 ? (int)input->pane : turn;
        size_t more = rows_needed(input, pane) - heights[pane];

        if (more > left)
            more = left;
        heights[pane] += more;
        left -= more;
    }
    return left;
}

/* Computes the layout with or without a map of the devices. */
static struct layout compute_layout(const struct layout_input *input, bool map)
{
    struct layout_band left = {.height = input->height};
    struct layout layout = {0};
    size_t heights[PANE_COUNT] = {0};
    size_t spare;

    if (left.height >= FOOTER_MIN) {
        left.height--;
        layout.footer = (struct layout_band){.y = left.height, .height = 1};
    }
    if (input->detail && left.height >= DETAIL_MIN) {
        left.height -= DETAIL;
        layout.detail = (struct layout_band){.y = left.height, .height = DETAIL};
    }
    layout.header = take_rows(&left, left.height > 1 ? 1 : 0);
    if (input->notes)
        layout.note = take_rows(&left, left.height > 1 ? 1 : 0);
    if (map)
        layout.map = take_rows(&left, 1);
    spare = share_rows(input, left.height, heights);
    if (input->charts > 0 && spare >= CHARTS_MIN)
        layout.charts =
            take_rows(&left, spare / input->charts > CHART_MAX ? input->charts * CHART_MAX : spare);
    for (int pane = 0; pane < PANE_COUNT; pane++)
        layout.panes[pane] = take_rows(&left, heights[pane]);
    return layout;
}

struct layout layout_compute(const struct layout_input *input)
{
    struct layout layout = compute_layout(input, false);
    size_t shown = layout.panes[PANE_DEVICES].height;

    if (input->map && input->height >= MAP_MIN && shown < rows_needed(input, PANE_DEVICES))
        layout = compute_layout(input, true);
    return layout;
}
