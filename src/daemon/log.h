/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's log: one line for each happening, its time, a word and key=value pairs, to a
 * descriptor. Lines are kept for a moment and written together, so that a busy daemon does not wait
 * for its disk with every one; log_flush writes what there is.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <berth/error.h>
#include <stdint.h>

#include "base/text/quantity.h"
#include "base/text/text.h"
#include "daemon/loop.h"

struct log {
    int descriptor;
    const char *path; /* of the file that it is; NULL: not to be changed for another */
    size_t written;
    struct loop *loop;
    struct timer flush;
    struct text lines;
    int64_t second; /* that `stamp` is about, since 1970 UTC */
    struct quantity_text stamp;
};

/* `descriptor` stays the caller's. If it is the file `path`, that is moved to `path`.1 when it has
 * grown long, and the descriptor goes on with a new one. */
void log_init(struct log *log, struct loop *loop, int descriptor, const char *path);
void log_finish(struct log *log);

struct log_words {
    char text[2 * BERTH_ERROR_MESSAGE_SIZE];
};

/* A text as a value: in double quotes, with a backslash before those and itself, on one line; for
 * use within one expression. What is longer than an error's message may be cut. */
struct log_words log_quote(const char *string);

/* Adds a line: log_line(log, now, "granted", "id=%llu uid=%u", ...); texts of others are to be
 * quoted. `now` is nanoseconds since 1970 UTC. */
void log_line(struct log *log, int64_t now, const char *word, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same piece by piece, for lines that a busy daemon writes with every message: log_begin, then
 * one call for each pair, then log_end. */
void log_begin(struct log *log, int64_t now, const char *word);
void log_number(struct log *log, const char *key, uint64_t number);
/* Words of our own, which it puts between double quotes. */
void log_text(struct log *log, const char *key, const char *words);
/* Where the caller appends the value itself. */
struct text *log_value(struct log *log, const char *key);
void log_end(struct log *log);

void log_flush(struct log *log);

#endif
