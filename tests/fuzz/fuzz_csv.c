/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any bytes as a trace. An accepted trace has all required fields, within the bytes of the
 * input. A refused one gets a message that names the file and the line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "sim/trace_csv.h"
#include "support/require_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char file_name[] = "fuzz.csv";

enum { NAME, COUNTED, FRACTION, KIND, LIMIT = 1000000 };

static const struct trace_csv_column columns[] = {
    [NAME] = {.name = "name"},
    [COUNTED] = {.name = "count"},
    [FRACTION] = {.name = "fraction", .optional = true},
    [KIND] = {.name = "kind", .optional = true},
};

static void check_refusal(const struct berth_error *error, int code, size_t lines)
{
    char *end;
    unsigned long line;

    require_message(error, code);
    require(code == BERTH_ERROR_INVALID);
    require(strncmp(error->message, file_name, strlen(file_name)) == 0);
    require(error->message[strlen(file_name)] == ':');
    line = strtoul(error->message + strlen(file_name) + 1, &end, 10);
    require(line >= 1 && line <= lines && *end == ':');
}

static void check_row(const struct trace_csv *csv, size_t size, size_t lines)
{
    struct berth_error error = BERTH_ERROR_INIT;
    uint64_t value = LIMIT + 1;
    int code;

    require(csv->line >= 1 && csv->line <= lines);
    for (size_t i = 0; i < COUNT(columns); i++) {
        const char *field = trace_csv_text(csv, i);

        require(field != NULL || columns[i].optional);
        require(field == NULL || strlen(field) <= size);
    }
    code = trace_csv_number(csv, COUNTED, 1, LIMIT, &value, &error);
    if (code < 0)
        check_refusal(&error, code, lines);
    require(code < 0 ? value == LIMIT + 1 : value >= 1 && value <= LIMIT);
    if (trace_csv_text(csv, FRACTION) == NULL)
        return;
    error = (struct berth_error)BERTH_ERROR_INIT;
    value = LIMIT + 1;
    code = trace_csv_decimal(csv, FRACTION, 3, LIMIT, &value, &error);
    if (code < 0)
        check_refusal(&error, code, lines);
    require(code < 0 ? value == LIMIT + 1 : value <= LIMIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct trace_csv csv;
    size_t lines = 1;
    int code;

    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    lines += size > 0 && data[size - 1] == '\r';
    code =
        trace_csv_parse(file_name, (const char *)data, size, columns, COUNT(columns), &csv, &error);
    while (code == 0 && (code = trace_csv_next(&csv, &error)) > 0) {
        check_row(&csv, size, lines);
        code = 0;
    }
    if (code < 0)
        check_refusal(&error, code, lines);
    trace_csv_finish(&csv);
    return 0;
}
