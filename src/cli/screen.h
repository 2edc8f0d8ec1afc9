/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal while a picture is redrawn in place: its second screen, without a cursor, given back
 * as it was however the program ends.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"

/* Whether standard output is a terminal that can do it. */
bool screen_is_supported(void);

/* Takes the terminal over. From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT give it back before
 * they end the program, and SIGTSTP before it stops. One at a time, for a program's main thread. */
void screen_enter(void);
void screen_leave(void);

/* Draws the picture, whole lines, in place of the last one; what does not fit is counted in the
 * last line. Nothing happens when the screen shows it already. Returns an exit code. */
int screen_draw(const struct text *picture);

/* Whether what was drawn may not be what is seen any more: it has another size, or was stopped. */
bool screen_is_dirty(void);

/* Waits for the next look, screen or not, so many nanoseconds, until a signal was handled or until
 * there is something to be read from the descriptor (-1: none). Returns false when nobody reads us
 * any more. */
bool screen_pause(int descriptor, int64_t time);

#endif
