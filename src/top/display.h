/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal, while it is ours: keys come from it, grids go to it. The only place that knows
 * ncurses. One at a time, for a program's main thread.
 */
#ifndef TOP_DISPLAY_H
#define TOP_DISPLAY_H

#include <berth/error.h>
#include <stdbool.h>

#include "top/control.h"
#include "top/grid.h"

/* Whether standard input and output are a terminal that can show a full screen. Fails with
 * BERTH_ERROR_INVALID. Does nothing to it. */
int display_check(struct berth_error *error);

/* Takes over that terminal, which was checked. Fails with BERTH_ERROR_INVALID; the terminal is as
 * it was then. */
int display_open(struct berth_error *error);

/* Gives the terminal back as it was. Does nothing when it is not ours. */
void display_close(void);

/* Gives it back for a while, and takes it over again. */
void display_suspend(void);
void display_resume(void);

/* Whether it shows more than ASCII. */
bool display_is_unicode(void);

/* Looks how large the terminal is now. */
void display_measure(size_t *ret_width, size_t *ret_height);

/* Shows a grid. `anew`: also what should be there already. */
void display_show(const struct grid *grid, bool redraw_all);

/* The next key that was pressed; false: there is none now. */
bool display_next_key(struct control_key *ret_key);

/* Whether the terminal is gone, though it is said to have something to read. */
bool display_is_gone(void);

#endif
