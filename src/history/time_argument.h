/* SPDX-License-Identifier: Apache-2.0
 *
 * Points in time as users type them.
 */
#ifndef HISTORY_TIME_ARGUMENT_H
#define HISTORY_TIME_ARGUMENT_H

#include <berth/error.h>
#include <stdint.h>

/* Reads a duration (that long before `now`), a date (2026-11-01: when that day begins), or a date
 * and a time (2026-11-01T09:30, with or without seconds and a fraction; a blank may stand for the
 * T). Local time, unless Z or an offset such as +01:00 follows. Returns nanoseconds since 1970 UTC,
 * at least 1. Fails with BERTH_ERROR_SYNTAX or _RANGE; *ret_time is unchanged then. Uses the time
 * zone of the environment. */
int time_argument_parse(const char *string, int64_t now, int64_t *ret_time,
                        struct berth_error *error);

#endif
