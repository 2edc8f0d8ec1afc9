/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/trace_csv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"

static const char byte_order_mark[] = "\xef\xbb\xbf";

/* The state while a row is split into fields. */
struct row_cursor {
    struct trace_csv *csv;
    char *at;
    char *end;    /* end of the content */
    char *limit;  /* end of the longest allowed row */
    size_t max;   /* fields to store; more are only counted */
    size_t count; /* fields so far */
    bool ended;   /* the row has ended */
};

int trace_csv_fail(const struct trace_csv *csv, struct berth_error *error, const char *format, ...)
{
    struct text message = {0};
    va_list arguments;

    va_start(arguments, format);
    text_append_list(&message, format, arguments);
    va_end(arguments);
    error_set(error, BERTH_ERROR_INVALID, "%s:%zu: %s", csv->name, csv->line,
              text_string(&message));
    text_finish(&message);
    return BERTH_ERROR_INVALID;
}

static int fail_too_long(const struct trace_csv *csv, struct berth_error *error)
{
    return trace_csv_fail(csv, error, "expected a row of at most %s, got a longer one",
                          quantity_format_size(TRACE_CSV_ROW_MAX).text);
}

/* Stores the field from `start` to `end`, and skips the comma or line end after it. */
static void end_field(struct row_cursor *cursor, char *start, char *end)
{
    char *at = cursor->at;

    if (at == cursor->end || *at == '\n')
        cursor->ended = true;
    if (at < cursor->end)
        cursor->csv->next_line += *at == '\n';
    cursor->at = at + (at < cursor->end);
    *end = '\0';
    if (cursor->count < cursor->max)
        cursor->csv->fields[cursor->count] = start;
    cursor->count++;
}

static bool is_line_end(const struct row_cursor *cursor, const char *at)
{
    if (at < cursor->end && *at == '\r')
        at++;
    return at == cursor->end || *at == '\n';
}

static int read_quoted(struct row_cursor *cursor, struct berth_error *error)
{
    char *start = cursor->at + 1;
    char *to = start;
    char *at = start;

    for (; at < cursor->limit; at++) {
        if (*at == '"' && (at + 1 == cursor->end || at[1] != '"'))
            break;
        at += *at == '"';
        cursor->csv->next_line += *at == '\n';
        *to++ = *at;
    }
    if (at == cursor->end)
        return trace_csv_fail(cursor->csv, error,
                              "expected a closing quote, got the end of the "
                              "file");
    if (at >= cursor->limit)
        return fail_too_long(cursor->csv, error);
    at++;
    if (is_line_end(cursor, at))
        at += at < cursor->end && *at == '\r';
    else if (*at != ',')
        return trace_csv_fail(cursor->csv, error,
                              "expected a comma after the closing quote, got %s",
                              quote_bytes(at, 1).text);
    cursor->at = at;
    end_field(cursor, start, to);
    return 0;
}

static int read_plain(struct row_cursor *cursor, struct berth_error *error)
{
    char *start = cursor->at;
    char *at = start;
    char *end;

    while (at < cursor->limit && *at != ',' && *at != '\n')
        at++;
    if (at == cursor->limit && at < cursor->end)
        return fail_too_long(cursor->csv, error);
    end = at;
    if ((at == cursor->end || *at == '\n') && end > start && end[-1] == '\r')
        end--;
    cursor->at = at;
    end_field(cursor, start, end);
    return 0;
}

/* Splits the row at csv->next into at most `max` fields. Returns its number of fields; 0: no more
 * rows. */
static int split_row(struct trace_csv *csv, size_t max, struct berth_error *error)
{
    struct row_cursor cursor = {.csv = csv, .max = max};
    int code = 0;

    cursor.at = csv->content.bytes + csv->next;
    cursor.end = csv->content.bytes + csv->content.length;
    while (cursor.at < cursor.end && is_line_end(&cursor, cursor.at)) {
        cursor.at += *cursor.at == '\r';
        cursor.at += cursor.at < cursor.end;
        csv->next_line++;
    }
    csv->line = csv->next_line;
    if (cursor.at == cursor.end)
        return 0;
    cursor.limit = cursor.end;
    if ((size_t)(cursor.end - cursor.at) > TRACE_CSV_ROW_MAX + 1)
        cursor.limit = cursor.at + TRACE_CSV_ROW_MAX + 1;
    while (code == 0 && !cursor.ended)
        code = cursor.at < cursor.end && *cursor.at == '"' ? read_quoted(&cursor, error)
                                                           : read_plain(&cursor, error);
    csv->next = (size_t)(cursor.at - csv->content.bytes);
    return code < 0 ? code : (int)cursor.count;
}

/* Finds the field of the header with the column's name. */
static int find_column(struct trace_csv *csv, size_t column, struct berth_error *error)
{
    const struct trace_csv_column *wanted = &csv->columns[column];

    csv->field_of_column[column] = SIZE_MAX;
    for (size_t i = 0; i < csv->field_count; i++) {
        if (strcmp(csv->fields[i], wanted->name) != 0)
            continue;
        if (csv->field_of_column[column] != SIZE_MAX)
            return trace_csv_fail(csv, error, "expected one column '%s', got two", wanted->name);
        csv->field_of_column[column] = i;
    }
    if (csv->field_of_column[column] == SIZE_MAX && !wanted->optional)
        return trace_csv_fail(csv, error, "expected a column '%s', got none", wanted->name);
    return 0;
}

static int read_header(struct trace_csv *csv, struct berth_error *error)
{
    int count;

    csv->next_line = 1;
    csv->fields = calloc(TRACE_CSV_COLUMNS_MAX, sizeof(*csv->fields));
    csv->field_of_column = calloc(csv->column_count + 1, sizeof(*csv->field_of_column));
    if (csv->fields == NULL || csv->field_of_column == NULL)
        return error_set_memory(error);
    if (strncmp(text_string(&csv->content), byte_order_mark, strlen(byte_order_mark)) == 0)
        csv->next = strlen(byte_order_mark);
    count = csv->content.length == csv->next ? 0 : split_row(csv, TRACE_CSV_COLUMNS_MAX, error);
    if (count < 0)
        return count;
    csv->line = csv->line == 0 ? 1 : csv->line;
    if (count == 0)
        return trace_csv_fail(csv, error, "expected a header with column names, got none");
    if (count > TRACE_CSV_COLUMNS_MAX)
        return trace_csv_fail(csv, error, "expected at most %d columns, got %d",
                              TRACE_CSV_COLUMNS_MAX, count);
    csv->field_count = (size_t)count;
    for (size_t i = 0; i < csv->column_count; i++) {
        int code = find_column(csv, i, error);

        if (code < 0)
            return code;
    }
    return 0;
}

/* Refuses a zero byte, which would end a field early. */
static int refuse_zeros(struct trace_csv *csv, struct berth_error *error)
{
    const char *bytes = text_string(&csv->content);
    const char *zero = memchr(bytes, '\0', csv->content.length);

    if (zero == NULL)
        return 0;
    csv->line = 1;
    for (const char *at = bytes; at < zero; at++)
        csv->line += *at == '\n';
    return trace_csv_fail(csv, error, "expected text, got a zero byte");
}

/* Reads the header of csv->content. */
static int begin_reading(struct trace_csv *csv, struct trace_csv *ret_csv,
                         struct berth_error *error)
{
    int code = refuse_zeros(csv, error);

    if (code == 0)
        code = read_header(csv, error);
    if (code < 0)
        trace_csv_finish(csv);
    *ret_csv = *csv;
    return code;
}

int trace_csv_open(const char *path, const struct trace_csv_column *columns, size_t count,
                   struct trace_csv *ret_csv, struct berth_error *error)
{
    struct trace_csv csv = {.name = path, .columns = columns, .column_count = count};
    int code = file_read(path, TRACE_CSV_FILE_MAX, &csv.content, error);

    *ret_csv = (struct trace_csv){0};
    return code < 0 ? code : begin_reading(&csv, ret_csv, error);
}

int trace_csv_parse(const char *name, const char *bytes, size_t length,
                    const struct trace_csv_column *columns, size_t count, struct trace_csv *ret_csv,
                    struct berth_error *error)
{
    struct trace_csv csv = {.name = name, .columns = columns, .column_count = count};

    *ret_csv = (struct trace_csv){0};
    text_append_bytes(&csv.content, bytes, length);
    if (text_failed(&csv.content)) {
        trace_csv_finish(&csv);
        return error_set_memory(error);
    }
    return begin_reading(&csv, ret_csv, error);
}

int trace_csv_next(struct trace_csv *csv, struct berth_error *error)
{
    int count = split_row(csv, csv->field_count, error);

    if (count > 0 && (size_t)count != csv->field_count)
        return trace_csv_fail(csv, error, "expected %zu fields, as in the header, got %d",
                              csv->field_count, count);
    return count > 0 ? 1 : count;
}

const char *trace_csv_text(const struct trace_csv *csv, size_t column)
{
    assert(column < csv->column_count);
    return csv->field_of_column[column] == SIZE_MAX ? NULL
                                                    : csv->fields[csv->field_of_column[column]];
}

/* Puts FILE:LINE and the column before the message. */
static int refuse_field(const struct trace_csv *csv, size_t column, struct berth_error *error)
{
    return error_wrap(error, BERTH_ERROR_INVALID, "%s:%zu: %s", csv->name, csv->line,
                      csv->columns[column].name);
}

int trace_csv_number(const struct trace_csv *csv, size_t column, uint64_t min, uint64_t max,
                     uint64_t *ret_number, struct berth_error *error)
{
    int code = quantity_parse_number(trace_csv_text(csv, column), min, max, ret_number, error);

    return code < 0 ? refuse_field(csv, column, error) : 0;
}

int trace_csv_decimal(const struct trace_csv *csv, size_t column, unsigned decimals, uint64_t max,
                      uint64_t *ret_value, struct berth_error *error)
{
    int code = quantity_parse_decimal(trace_csv_text(csv, column), decimals, max, ret_value, error);

    return code < 0 ? refuse_field(csv, column, error) : 0;
}

void trace_csv_finish(struct trace_csv *csv)
{
    text_finish(&csv->content);
    free(csv->fields);
    free(csv->field_of_column);
    *csv = (struct trace_csv){0};
}
