/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads traces in CSV: a header with the names of the columns, then rows. The order of columns does
 * not matter, and additional columns are ignored. Fields may be quoted as in RFC 4180, lines may
 * end in CR LF, the file may start with a byte order mark, and blank lines are skipped. Messages
 * start with FILE:LINE.
 *
 *     static const struct trace_csv_column columns[] = {{.name = "name"}, {.name = "gpus"}};
 *
 *     code = trace_csv_open(path, columns, COUNT(columns), &csv, error);
 *     while (code == 0 && (code = trace_csv_next(&csv, error)) > 0)
 *         code = trace_csv_number(&csv, 1, 0, 64, &gpus, error);
 *     trace_csv_finish(&csv);
 *
 * Not thread-safe.
 */
#ifndef SIM_TRACE_CSV_H
#define SIM_TRACE_CSV_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"

#define TRACE_CSV_FILE_MAX    ((size_t)256 * 1024 * 1024)
#define TRACE_CSV_ROW_MAX     ((size_t)64 * 1024)
#define TRACE_CSV_COLUMNS_MAX 256

struct trace_csv_column {
    const char *name; /* as in the header */
    bool optional;    /* the file need not have it */
};

/* An open file. Zeroed memory is a closed one. */
struct trace_csv {
    const char *name;                       /* the file's name, for messages; owned by the caller */
    const struct trace_csv_column *columns; /* owned by the caller */
    size_t column_count;
    size_t *field_of_column; /* by column: index of its field; SIZE_MAX: not in the file */
    char **fields;           /* of the current row, within `content` */
    size_t field_count;      /* in every row */
    struct text content;
    size_t next;      /* offset of the next row */
    size_t next_line; /* its line */
    size_t line;      /* of the current row */
};

/* Reads the file and its header. `path` and `columns` must outlive the csv. Returns 0, an error of
 * file_read(), BERTH_ERROR_INVALID (an empty file, a zero byte, a missing or repeated column, more
 * than TRACE_CSV_COLUMNS_MAX columns) or BERTH_ERROR_MEMORY; on an error *ret_csv is empty. */
int trace_csv_open(const char *path, const struct trace_csv_column *columns, size_t count,
                   struct trace_csv *ret_csv, struct berth_error *error);

/* Does the same as trace_csv_open(), but with bytes in memory. */
int trace_csv_parse(const char *name, const char *bytes, size_t length,
                    const struct trace_csv_column *columns, size_t count, struct trace_csv *ret_csv,
                    struct berth_error *error);

/* Reads the next row. Returns 1, 0 at the end of the file, or BERTH_ERROR_INVALID if the number of
 * fields differs from the header, a quotation does not end, or the row has more than
 * TRACE_CSV_ROW_MAX bytes. */
int trace_csv_next(struct trace_csv *csv, struct berth_error *error);

/* Returns the row's field of a column, by its index in `columns`; NULL: the file has no such
 * column. Valid until trace_csv_finish(). */
const char *trace_csv_text(const struct trace_csv *csv, size_t column);

/* Parse a field as a whole number from `min` to `max`, or as a decimal fraction from 0 to `max` in
 * units of 10^-decimals (quantity_parse_number(), quantity_parse_decimal()). The file must have the
 * column. Return 0 or BERTH_ERROR_INVALID; on an error the result stays as it is. */
int trace_csv_number(const struct trace_csv *csv, size_t column, uint64_t min, uint64_t max,
                     uint64_t *ret_number, struct berth_error *error);
int trace_csv_decimal(const struct trace_csv *csv, size_t column, unsigned decimals, uint64_t max,
                      uint64_t *ret_value, struct berth_error *error);

/* Refuses the current row with "FILE:LINE: <formatted>". Returns BERTH_ERROR_INVALID. */
int trace_csv_fail(const struct trace_csv *csv, struct berth_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Frees all memory. */
void trace_csv_finish(struct trace_csv *csv);

#endif
