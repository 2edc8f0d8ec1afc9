/* SPDX-License-Identifier: Apache-2.0
 *
 * berth top: a live view of a pool on the full screen.
 */
#ifndef TOP_TOP_H
#define TOP_TOP_H

#include <berth/error.h>
#include <stdint.h>

#include "view/columns.h"

#define TOP_INTERVAL_MIN DURATION_SECOND

struct top_settings {
    const char *inventory;   /* the value of --inventory; NULL: none */
    enum view_column column; /* to sort by */
    const char *filter;      /* NULL: all rows */
    int64_t interval;        /* between two samples of the devices, nanoseconds */
};

/* Shows the pool until the user quits, then restores the terminal. For the main thread only.
 * Returns 0, the number of the signal that ended it, or a negative error code: BERTH_ERROR_INVALID
 * where there is no terminal, or as follower_open() and follower_step(). */
int top_run(const struct top_settings *settings, struct berth_error *error);

#endif
