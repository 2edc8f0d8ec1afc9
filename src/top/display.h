/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal of berth top: reads keys and shows grids. The only file that uses ncurses. For the
 * main thread only.
 */
#ifndef TOP_DISPLAY_H
#define TOP_DISPLAY_H

#include <berth/error.h>
#include <stdbool.h>

#include "top/control.h"
#include "top/grid.h"

/* Checks that standard input and output are a terminal that can show a full screen. Changes
 * nothing. Fails with BERTH_ERROR_INVALID. */
int display_check(struct berth_error *error);

/* Switches the terminal to full screen. Call display_check() first. Fails with BERTH_ERROR_INVALID;
 * the terminal is unchanged then. */
int display_open(struct berth_error *error);

/* Restores the terminal. Does nothing if it is not open. */
void display_close(void);

/* Restore the terminal while the program is stopped, and switch back to full screen. */
void display_suspend(void);
void display_resume(void);

/* Returns whether the terminal shows Unicode. */
bool display_is_unicode(void);

/* Reads the current size of the terminal. */
void display_measure(size_t *ret_width, size_t *ret_height);

/* Shows a grid. `redraw_all`: also cells that have not changed. */
void display_show(const struct grid *grid, bool redraw_all);

/* Reads the next key without blocking. Returns false if there is none. */
bool display_next_key(struct control_key *ret_key);

/* Returns whether the terminal is gone: poll() reports input, but there is none. */
bool display_is_gone(void);

#endif
