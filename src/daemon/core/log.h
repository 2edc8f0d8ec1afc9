/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's log: a line for each event, with its time, a word and key=value pairs. Lines are
 * collected for a moment and written together, so that a busy daemon does not wait for its disk
 * with each line.
 *
 * No reader of a pipe or socket can delay the daemon: a line that cannot be written at once is left
 * out, and the next line that can be written is preceded by the number of such lines. Only the disk
 * of a file can delay these functions.
 */
#ifndef DAEMON_CORE_LOG_H
#define DAEMON_CORE_LOG_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/quantity.h"
#include "base/text/text.h"
#include "daemon/core/loop.h"

struct log {
    int descriptor;
    const char *path; /* the path of the descriptor's file; NULL: it is never moved aside */
    bool is_file;
    bool is_socket;
    bool is_cut;     /* the last line was written in part */
    size_t left_out; /* lines since the last one that was written */
    size_t written;
    struct loop *loop;
    struct timer flush;
    struct text lines;
    size_t begin;   /* of the last line */
    int64_t second; /* of `stamp`, since 1970 UTC */
    struct quantity_text stamp;
};

/* The caller keeps the descriptor, and `path` must stay valid. If the descriptor is the file
 * `path`, a long file is moved to `path`.1, and the descriptor continues with a new file. If it
 * cannot be moved, or no new file can be made, it is emptied. */
void log_init(struct log *log, struct loop *loop, int descriptor, const char *path);
void log_finish(struct log *log);

struct log_words {
    char text[2 * BERTH_ERROR_MESSAGE_SIZE];
};

/* Returns the text in double quotes, with a backslash before quotes and backslashes, on one line;
 * for use within one expression. A text that is longer than an error's message may be cut. */
struct log_words log_quote(const char *string);

/* Adds a line: log_line(log, now, "granted", "id=%llu uid=%u", ...). The caller quotes texts of
 * clients. `now` is nanoseconds since 1970 UTC. */
void log_line(struct log *log, int64_t now, const char *word, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same piece by piece, for frequent lines: log_begin(), a call for each pair, log_end(). */
void log_begin(struct log *log, int64_t now, const char *word);
void log_number(struct log *log, const char *key, uint64_t number);
/* Adds a constant text in double quotes. */
void log_text(struct log *log, const char *key, const char *words);
/* Returns the text to which the caller appends the value. */
struct text *log_value(struct log *log, const char *key);
/* Returns the length of the line. */
size_t log_end(struct log *log);

/* Writes all collected lines. */
void log_flush(struct log *log);

#endif
