/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a simulation is, for somebody who waits for it: a bar on stderr that updates itself where
 * that is a terminal, nothing anywhere else. Not for use by two threads at once.
 */
#ifndef SIM_PROGRESS_H
#define SIM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory is one that shows nothing. */
struct progress {
    bool shown; /* stderr is a terminal with a cursor */
    bool drawn; /* and has the bar on it */
    int64_t drawn_at;
};

/* Looks at stderr. */
void progress_begin(struct progress *progress);

/* `what` is being done, and `done` of `of` steps of all are; drawn at most ten times a second. */
void progress_show(struct progress *progress, const char *what, uint64_t done, uint64_t of);

/* Clears the bar. Before anything else is written to the terminal. */
void progress_end(struct progress *progress);

#endif
