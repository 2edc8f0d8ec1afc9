/* SPDX-License-Identifier: Apache-2.0
 *
 * A progress bar on stderr, if that is a terminal; nothing otherwise. Not thread-safe.
 */
#ifndef SIM_PROGRESS_H
#define SIM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory shows nothing. */
struct progress {
    bool shown; /* stderr is a terminal that can move its cursor */
    bool drawn; /* the bar is on the screen */
    int64_t drawn_at;
};

/* Checks whether stderr can show the bar. */
void progress_begin(struct progress *progress);

/* Shows that `done` of `of` steps are done, with the label `what`. Draws at most ten times a
 * second. */
void progress_show(struct progress *progress, const char *what, uint64_t done, uint64_t of);

/* Clears the bar. Call it before other output to the terminal. */
void progress_end(struct progress *progress);

#endif
