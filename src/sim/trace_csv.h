/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces as comma-separated values: rows below a header, read by the names of their columns. The
 * order of the columns does not matter, nor do columns that nobody asked for. Fields may be quoted
 * as RFC 4180 has it, lines may end in CR LF, a byte order mark may come first; blank lines are
 * passed over. Whatever else is wrong is refused with one line that begins with FILE:LINE.
 *
 *     static const struct csv_column columns[] = {{.name = "name"}, {.name = "gpus"}};
 *
 *     code = trace_csv_open(path, columns, COUNT(columns), &csv, error);
 *     while (code == 0 && (code = trace_csv_next(&csv, error)) > 0)
 *         code = trace_csv_number(&csv, 1, 0, 64, &gpus, error);
 *     trace_csv_finish(&csv);
 *
 * Not for use by two threads at once.
 */
#ifndef SIM_TRACE_CSV_H
#define SIM_TRACE_CSV_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"

/* More than any trace has: bytes of a file, bytes of a row, columns. */
#define TRACE_CSV_FILE_MAX    ((size_t)256 * 1024 * 1024)
#define TRACE_CSV_ROW_MAX     ((size_t)64 * 1024)
#define TRACE_CSV_COLUMNS_MAX 256

struct trace_csv_column {
    const char *name; /* as the header spells it */
    bool optional;    /* the file may be without */
};

/* A file that is being read. Zeroed memory is none. */
struct trace_csv {
    const char *name;                       /* of the file, for messages; the caller's */
    const struct trace_csv_column *columns; /* the caller's */
    size_t column_count;
    size_t
        *field_of_column; /* by column: which field of a row it is; SIZE_MAX: the file has none */
    char **fields;        /* of the row that was read last, within `content` */
    size_t field_count;   /* of every row */
    struct text content;
    size_t next;      /* where the next row begins */
    size_t next_line; /* its line */
    size_t line;      /* of the row that was read last */
};

/* Reads the file and its header. `path` and `columns` must outlast the csv. Fails as file_read
 * does, or with BERTH_ERROR_INVALID (empty, a zero byte, a column missing or there twice, more than
 * TRACE_CSV_COLUMNS_MAX columns) or _MEMORY; *ret_csv is empty then. */
int trace_csv_open(const char *path, const struct trace_csv_column *columns, size_t count,
                   struct trace_csv *ret_csv, struct berth_error *error);

/* The same of bytes that were read already. */
int trace_csv_parse(const char *name, const char *bytes, size_t length,
                    const struct trace_csv_column *columns, size_t count, struct trace_csv *ret_csv,
                    struct berth_error *error);

/* Goes to the next row. Returns 1, 0 at the end of the file, or BERTH_ERROR_INVALID: another number
 * of fields than the header, a quotation that does not end, more than TRACE_CSV_ROW_MAX bytes. */
int trace_csv_next(struct trace_csv *csv, struct berth_error *error);

/* The row's field of a column, by its number in the table; NULL: the file has no such column. Good
 * until trace_csv_finish. */
const char *trace_csv_text(const struct trace_csv *csv, size_t column);

/* The field as a whole number from `least` to `most`, or as a decimal fraction from 0 to `most` in
 * units of 10^-decimals (quantity_parse_number, quantity_parse_decimal). The file has to have the
 * column (assert). Fails with BERTH_ERROR_INVALID; the result is untouched then. */
int trace_csv_number(const struct trace_csv *csv, size_t column, uint64_t min, uint64_t max,
                     uint64_t *ret_number, struct berth_error *error);
int trace_csv_decimal(const struct trace_csv *csv, size_t column, unsigned decimals, uint64_t max,
                      uint64_t *ret_value, struct berth_error *error);

/* Refuses the row that was read last: "FILE:LINE: <formatted>". Returns BERTH_ERROR_INVALID. */
int trace_csv_fail(const struct trace_csv *csv, struct berth_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Frees what it holds and leaves an empty one. */
void trace_csv_finish(struct trace_csv *csv);

#endif
