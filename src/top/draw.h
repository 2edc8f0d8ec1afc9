/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws a pool on a grid of cells.
 */
#ifndef TOP_DRAW_H
#define TOP_DRAW_H

#include "top/grid.h"
#include "top/top_model.h"
#include "view/follower.h"
#include "view/load_history.h"

/* The input of draw(). It borrows all that it points to. */
struct top_picture {
    const struct pool_view *view; /* NULL: none yet */
    const struct pool_address *address;
    struct user_names *users;
    const struct load_history *history;
    int64_t now; /* by the daemon's clock */
    enum follower_state state;
    const char *reason; /* why the daemon is gone */
    bool paused;
    bool help;           /* show the list of keys */
    size_t help_first;   /* its first line on the screen */
    const char *prompt;  /* a question in the last line; NULL: none */
    bool typing;         /* the prompt grows: keep its end visible */
    const char *message; /* in the last line; NULL: show the keys there */
    enum style message_style;
};

/* Draws the whole screen and scrolls the panes to their selected rows. The rows of the model must
 * come from the picture's view. Returns 0 or BERTH_ERROR_MEMORY. */
int draw(const struct top_picture *picture, struct top_model *model, struct grid *grid);

/* Returns the first line of the help on a screen of this height: `wanted`, or less if that would
 * leave room below the last line. */
size_t draw_help_first(size_t wanted, size_t height);

#endif
