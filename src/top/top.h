/* SPDX-License-Identifier: Apache-2.0
 *
 * berth top: a pool on a full screen, live.
 */
#ifndef TOP_TOP_H
#define TOP_TOP_H

#include <berth/error.h>
#include <stdint.h>

#include "view/columns.h"

#define TOP_INTERVAL_MIN DURATION_SECOND

struct top_settings {
    const char *inventory;   /* NULL: none was given */
    enum view_column column; /* to sort by */
    const char *filter;      /* NULL: all rows */
    int64_t interval;        /* from one look at the devices to the next, nanoseconds */
};

/* Shows it until somebody has had enough. The terminal is as before when it returns. Returns 0, the
 * number of the signal that ended it, or a negative error code: BERTH_ERROR_INVALID where there is
 * no terminal, or as follower_open and follower_step. */
int top_run(const struct top_settings *settings, struct berth_error *error);

#endif
