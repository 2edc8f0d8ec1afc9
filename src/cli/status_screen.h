/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal while a picture is redrawn in place: its second screen, without a cursor, given back
 * as it was however the program ends.
 */
#ifndef CLI_STATUS_SCREEN_H
#define CLI_STATUS_SCREEN_H

#include <stdbool.h>

#include "base/text.h"

/* Whether standard output is a terminal that can do it. */
bool status_screen_works(void);

/* Takes the terminal over. From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT give it back before
 * they end the program, and SIGTSTP before it stops. One at a time, for a program's main thread. */
void status_screen_enter(void);
void status_screen_leave(void);

/* Draws the picture, whole lines, in place of the last one; what does not fit is counted in the
 * last line. Nothing happens when the screen shows it already. Returns an exit code. */
int status_screen_draw(const struct text *picture);

#endif
