/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of the screen, by its height and by the number of rows. Pure.
 */
#ifndef TOP_LAYOUT_H
#define TOP_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "top/top_model.h"

/* Rows of the screen. Height 0: not shown. */
struct layout_band {
    size_t y;
    size_t height;
};

struct layout_input {
    size_t height;           /* of the screen */
    enum top_pane pane;      /* the pane that keys go to; always shown */
    size_t rows[PANE_COUNT]; /* of each pane, without titles and headings */
    bool notes;              /* there is a note below the header */
    size_t charts;           /* lines of charts to draw */
    bool map;                /* the map of all devices fits into one line */
    bool detail;             /* show details of the selected row */
};

struct layout {
    struct layout_band header;
    struct layout_band note;
    struct layout_band map; /* only if not all devices fit into their pane */
    struct layout_band charts;
    struct layout_band panes[PANE_COUNT]; /* with a title each */
    struct layout_band detail;
    struct layout_band footer;
};

struct layout layout_compute(const struct layout_input *input);

#endif
