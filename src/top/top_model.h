/* SPDX-License-Identifier: Apache-2.0
 *
 * What is on the screen, apart from where: the rows of the three panes, sorted and filtered, and
 * which of them is selected. A selection stays with what was selected, wherever it moves; where
 * nobody has left the first row, that is it. Zeroed memory has no rows yet. No I/O but for user
 * names. Not for use by two threads at once.
 */
#ifndef TOP_TOP_MODEL_H
#define TOP_TOP_MODEL_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "view/columns.h"
#include "view/pool_view.h"
#include "view/user_names.h"

enum top_pane {
    PANE_DEVICES,
    PANE_LEASES,
    PANE_QUEUE,
    PANE_COUNT,
};

#define TOP_NOTHING SIZE_MAX
/* The longest filter in bytes. */
#define TOP_FILTER_MAX 127

/* One line of a pane: places in the view, or TOP_NOTHING. */
struct top_row {
    size_t slot;       /* in the devices' pane */
    size_t use;        /* there: into view.uses; nothing for a device without a lease */
    size_t lease;      /* there and in the leases' pane */
    size_t claim;      /* in the queue's pane */
    bool continuation; /* a further line of the device before */
};

/* What a row is about, for as long as it exists. */
struct top_row_key {
    struct device_id device; /* of the devices' pane */
    uint64_t id;             /* of the lease or claim; 0: none */
};

struct top_list {
    enum view_column column; /* by which it is sorted */
    bool reversed;
    struct {
        VECTOR_OF(struct top_row);
    } rows;
    size_t total; /* of the rows, without the filter */
    struct top_row_key selected;
    size_t selected_row; /* the place of that in the rows */
    bool chosen;         /* somebody went there; else it is the first row, whichever that is */
    size_t first;        /* the row that is shown first */
    size_t page;         /* how many rows are shown; whoever draws says so */
};

struct top_model {
    enum top_pane pane; /* that keys go to */
    struct top_list lists[PANE_COUNT];
    char filter[TOP_FILTER_MAX + 1]; /* words of which a row must have all; "": all rows */
};

/* Sorts each pane by its first column, which `column` replaces in those that have it. */
void top_model_init(struct top_model *model, enum view_column column);
void top_model_finish(struct top_model *model);

/* Makes the rows anew from a view, whose places they keep: to be called for each new view, and when
 * the filter or an order has changed. Fails with BERTH_ERROR_MEMORY; then there are no rows. */
int top_model_update(struct top_model *model, const struct pool_view *view,
                     struct user_names *users);

/* Moves the selection so many rows in the pane of the keys; beyond an end is that end. The view is
 * the one of the last update. */
void top_model_move(struct top_model *model, const struct pool_view *view, long rows);

/* Shows the selected row among `page` ones. */
void top_model_scroll(struct top_list *list, size_t page);

/* The selected row; NULL: the pane has none. */
const struct top_row *top_model_selected(const struct top_model *model, enum top_pane pane);

/* Sorts the pane of the keys by the next column, or by the one before (-1). */
void top_model_choose_column(struct top_model *model, int direction);

/* Whether a column has its largest first, unless reversed. */
bool top_model_is_column_descending(enum view_column column);

/* Whether a pane has the column. */
bool top_model_has_column(enum top_pane pane, enum view_column column);

#endif
