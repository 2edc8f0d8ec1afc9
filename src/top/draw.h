/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool on a grid of cells.
 */
#ifndef TOP_DRAW_H
#define TOP_DRAW_H

#include "top/grid.h"
#include "top/top_history.h"
#include "top/top_model.h"
#include "view/follower.h"

/* What is shown, and how. Points to the caller's. */
struct top_picture {
    const struct pool_view *view; /* NULL: none yet */
    const struct pool_address *address;
    struct user_names *users;
    const struct load_history *history;
    int64_t step; /* of the history, nanoseconds */
    int64_t now;  /* by the daemon's clock */
    enum follower_state state;
    const char *reason; /* why the daemon is gone */
    bool paused;
    bool help;           /* the keys are listed */
    size_t help_first;   /* from this line on */
    const char *prompt;  /* in the last line, for an answer; NULL: none */
    bool typing;         /* it grows at its end, which is to be seen */
    const char *message; /* in the last line; NULL: the keys */
    enum style message_style;
};

/* Draws all of it, at the grid's size, and scrolls the panes to what is selected. The rows of the
 * model must be of the picture's view. Returns 0 or BERTH_ERROR_MEMORY. */
int draw(const struct top_picture *picture, struct top_model *model, struct grid *grid);

/* The line of the help that is the first on a screen of some height, where `wanted` is to be: not
 * one that leaves room below the last. */
size_t draw_help_first(size_t wanted, size_t height);

#endif
