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

enum model_pane {
    PANE_DEVICES,
    PANE_LEASES,
    PANE_QUEUE,
    PANE_COUNT,
};

#define MODEL_NOTHING SIZE_MAX
/* The longest filter in bytes. */
#define MODEL_FILTER_MAX 127

/* One line of a pane: places in the view, or MODEL_NOTHING. */
struct model_row {
    size_t slot;  /* in the devices' pane */
    size_t use;   /* there: into view.uses; nothing for a device without a lease */
    size_t lease; /* there and in the leases' pane */
    size_t claim; /* in the queue's pane */
    bool again;   /* a further line of the device before */
};

/* What a row is about, for as long as it exists. */
struct model_key {
    struct device_id device; /* of the devices' pane */
    uint64_t id;             /* of the lease or claim; 0: none */
};

struct model_list {
    enum view_column column; /* by which it is sorted */
    bool reversed;
    struct {
        VECTOR_OF(struct model_row);
    } rows;
    size_t total; /* of the rows, without the filter */
    struct model_key selected;
    size_t selected_row; /* the place of that in the rows */
    bool chosen;         /* somebody went there; else it is the first row, whichever that is */
    size_t first;        /* the row that is shown first */
    size_t page;         /* how many rows are shown; whoever draws says so */
};

struct model {
    enum model_pane pane; /* that keys go to */
    struct model_list lists[PANE_COUNT];
    char filter[MODEL_FILTER_MAX + 1]; /* words of which a row must have all; "": all rows */
};

/* Sorts each pane by its first column, which `column` replaces in those that have it. */
void model_init(struct model *model, enum view_column column);
void model_finish(struct model *model);

/* Makes the rows anew from a view, whose places they keep: to be called for each new view, and when
 * the filter or an order has changed. Fails with BERTH_ERROR_MEMORY; then there are no rows. */
int model_update(struct model *model, const struct pool_view *view, struct user_names *users);

/* Moves the selection so many rows in the pane of the keys; beyond an end is that end. The view is
 * the one of the last update. */
void model_move(struct model *model, const struct pool_view *view, long rows);

/* Shows the selected row among `page` ones. */
void model_scroll(struct model_list *list, size_t page);

/* The selected row; NULL: the pane has none. */
const struct model_row *model_selected(const struct model *model, enum model_pane pane);

/* Sorts the pane of the keys by the next column, or by the one before (-1). */
void model_choose_column(struct model *model, int direction);

/* Whether a column has its largest first, unless reversed. */
bool model_column_falls(enum view_column column);

/* Whether a pane has the column. */
bool model_has_column(enum model_pane pane, enum view_column column);

#endif
