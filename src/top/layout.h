/* SPDX-License-Identifier: Apache-2.0
 *
 * Where on the screen things are, by its size and by how much there is to show. Pure.
 */
#ifndef TOP_LAYOUT_H
#define TOP_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "top/top_model.h"

/* Rows of the screen; without a height: not shown. */
struct layout_band {
    size_t y;
    size_t height;
};

struct layout_input {
    size_t height;           /* of the screen */
    enum top_pane pane;      /* that keys go to: it is always shown */
    size_t rows[PANE_COUNT]; /* of each pane, without titles and headings */
    bool notes;              /* there is something to say below the first line */
    size_t charts;           /* how many lines of charts there are to draw */
    bool map;                /* all devices can be seen in one line */
    bool detail;             /* there is more to say of what is selected */
};

struct layout {
    struct layout_band header;
    struct layout_band note;
    struct layout_band map; /* only where not all devices have a line of their own */
    struct layout_band charts;
    struct layout_band panes[PANE_COUNT]; /* with a title each */
    struct layout_band detail;
    struct layout_band footer;
};

struct layout layout_compute(const struct layout_input *input);

#endif
