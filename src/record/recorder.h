/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder: follows a daemon over the connection that it is given, and writes down the leases
 * that it hears of. What cannot be written is kept for a while and tried again. It ends when the
 * connection does, after writing down the rest. Blocks as long as the disk does: that is why it is
 * a program of its own.
 */
#ifndef RECORD_RECORDER_H
#define RECORD_RECORDER_H

#include <berth/error.h>
#include <stdint.h>

#include "history/history_record.h"

struct recorder_settings {
    const char *file;
    const char *pool; /* the daemon's name for its count of ids */
    enum history_readers readers;
    int64_t keep;   /* leases are forgotten so long after their end, nanoseconds */
    int connection; /* to the daemon; consumed */
    int problems;   /* where it says how it fares: a line "problem TEXT" for each new one, "good"
                       when all is well again; -1: nowhere */
};

/* Runs until the connection ends. Fails with what could not be written then, or with
 * BERTH_ERROR_MEMORY. */
int recorder_run(const struct recorder_settings *settings, struct berth_error *error);

#endif
