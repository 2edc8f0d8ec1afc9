/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the three panes, sorted and filtered, and the selected row of each. The selection
 * follows its device, lease or claim. Until the user moves it, it is the first row. Zeroed memory
 * has no rows yet. No I/O except for user names. Not thread-safe.
 */
#ifndef TOP_TOP_MODEL_H
#define TOP_TOP_MODEL_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/system/user_names.h"
#include "base/vector.h"
#include "view/columns.h"
#include "view/pool_view.h"

enum top_pane {
    PANE_DEVICES,
    PANE_LEASES,
    PANE_QUEUE,
    PANE_COUNT,
};

#define TOP_NOTHING SIZE_MAX
/* In bytes. */
#define TOP_FILTER_MAX 127

/* One line of a pane: indices into the view, or TOP_NOTHING. */
struct top_row {
    size_t slot;       /* in the pane of devices */
    size_t use;        /* in the pane of devices: index into view.uses; TOP_NOTHING: no lease */
    size_t lease;      /* in the panes of devices and of leases */
    size_t claim;      /* in the pane of the queue */
    bool continuation; /* a further line of the same device */
};

/* Identifies a row across views. */
struct top_row_key {
    struct device_id device; /* in the pane of devices */
    uint64_t id;             /* of the lease or claim; 0: none */
};

struct top_list {
    enum view_column column; /* the rows are sorted by this */
    bool reversed;
    struct {
        VECTOR_OF(struct top_row);
    } rows;
    size_t total; /* number of items without the filter */
    struct top_row_key selected;
    size_t selected_row; /* its index in the rows */
    bool chosen;         /* the user moved the selection; else the first row is selected */
    size_t first;        /* the first row on the screen */
    size_t page;         /* how many rows are shown; set by top_model_scroll() */
};

struct top_model {
    enum top_pane pane; /* the pane that keys go to */
    struct top_list lists[PANE_COUNT];
    char filter[TOP_FILTER_MAX + 1]; /* a row must have all these words; "": all rows */
};

/* Sorts each pane by `column`, or by the pane's first column if it does not have that one. */
void top_model_init(struct top_model *model, enum view_column column);
void top_model_finish(struct top_model *model);

/* Rebuilds the rows from a view; they are indices into it. Call it for each new view, and after the
 * filter or an order has changed. Fails with BERTH_ERROR_MEMORY; then there are no rows. */
int top_model_update(struct top_model *model, const struct pool_view *view,
                     struct user_names *users);

/* Moves the selection by `rows` in the pane that keys go to, at most to its first or last row.
 * `view` is the one of the last update. */
void top_model_move(struct top_model *model, const struct pool_view *view, long rows);

/* Scrolls so that the selected row is among the `page` rows that are shown. */
void top_model_scroll(struct top_list *list, size_t page);

/* Returns the selected row; NULL: the pane has no rows. */
const struct top_row *top_model_selected(const struct top_model *model, enum top_pane pane);

/* Sorts the pane that keys go to by the next column (1) or the previous one (-1). */
void top_model_choose_column(struct top_model *model, int direction);

/* Returns whether a column is sorted with the largest first, unless reversed. */
bool top_model_is_column_descending(enum view_column column);

/* Returns whether a pane has the column. */
bool top_model_has_column(enum top_pane pane, enum view_column column);

#endif
