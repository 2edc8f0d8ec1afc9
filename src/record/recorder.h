/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder: follows a daemon over the given connection and writes its leases to the history.
 * Leases that cannot be written are kept for a while and retried. It ends when the connection does,
 * after writing the rest. It blocks on the disk, which is why it is a separate program.
 */
#ifndef RECORD_RECORDER_H
#define RECORD_RECORDER_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "history/history_record.h"

struct recorder_settings {
    const char *file;
    const char *pool; /* identifies the daemon's counter of ids */
    enum history_readers readers;
    int64_t keep;        /* how long leases are kept after their end, nanoseconds */
    uint64_t size;       /* the maximum size of the file and its log, bytes; 0: none */
    bool shows_commands; /* record command lines, not only the programs' names */
    uint32_t alone_max;  /* how many short leases of a user per minute get a record of their own */
    int connection;      /* to the daemon; consumed */
    int problems; /* receives lines: "problem TEXT" for each new problem, "good" when writing works
                     again, "known N" and "missing N" with the numbers of recorded and of dropped
                     leases; -1: none */
};

/* Runs until the connection ends. Fails with the last write error, or with BERTH_ERROR_MEMORY. */
int recorder_run(const struct recorder_settings *settings, struct berth_error *error);

#endif
