/* SPDX-License-Identifier: Apache-2.0
 *
 * Redraws a picture in place on the terminal. Uses the alternate screen without a cursor, and
 * restores the terminal whenever the program ends or stops. For the main thread only.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"

/* Returns whether standard output is a terminal that supports this. */
bool screen_is_supported(void);

/* Switches to the alternate screen. From then on, SIGINT, SIGTERM, SIGHUP and SIGQUIT restore the
 * terminal before they end the program, and SIGTSTP before it stops the program. */
void screen_enter(void);
void screen_leave(void);

/* Draws the picture, which has whole lines, in place of the last one. The last row counts the lines
 * that do not fit. Does nothing if the screen shows the picture already. Returns an exit code. */
int screen_draw(const struct text *picture);

/* Returns whether the screen must be drawn again: its size changed, or the program was stopped. */
bool screen_is_dirty(void);

/* Waits for `time` nanoseconds, until a signal was handled, or until the descriptor is readable
 * (-1: none). Also works without a screen. Returns false if the reader of standard output is gone.
 */
bool screen_pause(int descriptor, int64_t time);

#endif
