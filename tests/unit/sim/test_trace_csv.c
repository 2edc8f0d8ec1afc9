/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "sim/trace_csv.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "support/random.h"
#include "support/steps.h"

enum { NAME, GPUS, MODEL };

static const struct trace_csv_column columns[] = {
    [NAME] = {.name = "name"},
    [GPUS] = {.name = "gpus"},
    [MODEL] = {.name = "model", .optional = true},
};

static int parse_bytes(const char *bytes, size_t length, struct trace_csv *ret_csv,
                       struct berth_error *error)
{
    return trace_csv_parse("trace.csv", bytes, length, columns, COUNT(columns), ret_csv, error);
}

static int parse(const char *content, struct trace_csv *ret_csv, struct berth_error *error)
{
    return parse_bytes(content, strlen(content), ret_csv, error);
}

/* Opens content with a valid header. */
static struct trace_csv opened(const char *content)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct trace_csv csv;

    assert_int_equal(parse(content, &csv, &error), 0);
    return csv;
}

static void check_row(struct trace_csv *csv, const char *name, uint64_t gpus, const char *model)
{
    struct berth_error error = BERTH_ERROR_INIT;
    uint64_t found = UINT64_MAX;

    assert_int_equal(trace_csv_next(csv, &error), 1);
    assert_string_equal(trace_csv_text(csv, NAME), name);
    assert_int_equal(trace_csv_number(csv, GPUS, 0, 64, &found, &error), 0);
    assert_int_equal(found, gpus);
    if (model == NULL)
        assert_null(trace_csv_text(csv, MODEL));
    else
        assert_string_equal(trace_csv_text(csv, MODEL), model);
}

static void check_end(struct trace_csv *csv)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(trace_csv_next(csv, &error), 0);
    assert_int_equal(trace_csv_next(csv, &error), 0);
    trace_csv_finish(csv);
}

static void columns_go_by_name(void **state)
{
    struct trace_csv csv = opened("gpus,colour,model,name\n2,red,V100,a\n4,,,b");

    (void)state;
    check_row(&csv, "a", 2, "V100");
    assert_int_equal(csv.line, 2);
    check_row(&csv, "b", 4, "");
    check_end(&csv);
}

static void optional_columns_may_be_missing(void **state)
{
    struct trace_csv csv = opened("name,gpus\na,1\n");

    (void)state;
    check_row(&csv, "a", 1, NULL);
    check_end(&csv);
}

static void other_systems_write_lines_too(void **state)
{
    struct trace_csv csv = opened("\xef\xbb\xbfname,gpus\r\na,1\r\n\r\nb,2\r\n");

    (void)state;
    check_row(&csv, "a", 1, NULL);
    check_row(&csv, "b", 2, NULL);
    assert_int_equal(csv.line, 4);
    check_end(&csv);
}

static void a_file_may_end_in_blank_lines(void **state)
{
    struct trace_csv csv = opened("\nname,gpus\n\na,1\n\n\r\n\r");

    (void)state;
    check_row(&csv, "a", 1, NULL);
    check_end(&csv);
}

static void quoted_fields_may_hold_anything(void **state)
{
    struct trace_csv csv = opened("\"name\",gpus,\"model\"\r\n"
                                  "\"a,b\",\"3\",\"say \"\"so\"\"\"\r\n"
                                  "\"two\nlines\",4,\"\"\n"
                                  "plain \"quotes\",5,\"last\"");

    (void)state;
    check_row(&csv, "a,b", 3, "say \"so\"");
    check_row(&csv, "two\nlines", 4, "");
    assert_int_equal(csv.line, 3);
    check_row(&csv, "plain \"quotes\"", 5, "last");
    assert_int_equal(csv.line, 5);
    check_end(&csv);
}

static void decimals_are_exact(void **state)
{
    struct trace_csv csv = opened("name,gpus\na,66.25\nb,0.001\n");
    uint64_t value = 0;

    (void)state;
    assert_int_equal(trace_csv_next(&csv, NULL), 1);
    assert_int_equal(trace_csv_decimal(&csv, GPUS, 3, 100000, &value, NULL), 0);
    assert_int_equal(value, 66250);
    assert_int_equal(trace_csv_next(&csv, NULL), 1);
    assert_int_equal(trace_csv_decimal(&csv, GPUS, 3, 100000, &value, NULL), 0);
    assert_int_equal(value, 1);
    trace_csv_finish(&csv);
}

static void bad_headers_are_refused(void **state)
{
    static const struct {
        const char *content;
        const char *message;
    } cases[] = {
        {"", "trace.csv:1: expected a header with column names, got none"},
        {"\xef\xbb\xbf", "trace.csv:1: expected a header with column names, got none"},
        {"\n\r\n", "trace.csv:3: expected a header with column names, got none"},
        {"name,model\n", "trace.csv:1: expected a column 'gpus', got none"},
        {"name, gpus\n", "trace.csv:1: expected a column 'gpus', got none"},
        {"NAME,gpus\n", "trace.csv:1: expected a column 'name', got none"},
        {"name,gpus,name\n", "trace.csv:1: expected one column 'name', got two"},
        {"name,\"gpus\n", "trace.csv:1: expected a closing quote, got the end of the file"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct trace_csv csv;

        assert_int_equal(parse(cases[i].content, &csv, &error), BERTH_ERROR_INVALID);
        assert_string_equal(error.message, cases[i].message);
        assert_null(csv.fields);
    }
}

static void bad_rows_are_refused(void **state)
{
    static const struct {
        const char *content;
        const char *message;
    } cases[] = {
        {"a", "trace.csv:2: expected 2 fields, as in the header, got 1"},
        {"a,1,2", "trace.csv:2: expected 2 fields, as in the header, got 3"},
        {"\n\na,1,", "trace.csv:4: expected 2 fields, as in the header, got 3"},
        {"\"a,1\n", "trace.csv:2: expected a closing quote, got the end of the file"},
        {"\"a\"b,1", "trace.csv:2: expected a comma after the closing quote, got 'b'"},
        {"\"a\"\r,1", "trace.csv:2: expected a comma after the closing quote, got '?'"},
        {"a,", "trace.csv:2: gpus: expected a whole number, got ''"},
        {"a,x", "trace.csv:2: gpus: expected a whole number, got 'x'"},
        {"a,1.5", "trace.csv:2: gpus: expected a whole number, got '1.5'"},
        {"a,-1", "trace.csv:2: gpus: expected a whole number, got '-1'"},
        {"a,nan", "trace.csv:2: gpus: expected a whole number, got 'nan'"},
        {"a, 1", "trace.csv:2: gpus: expected a whole number, got ' 1'"},
        {"a,65", "trace.csv:2: gpus: expected a whole number from 0 to 64, got 65"},
        {"a,99999999999999999999999",
         "trace.csv:2: gpus: expected a whole number from 0 to 64, got '99999999999999999999999'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct text content = {0};
        uint64_t gpus = 7;
        struct trace_csv csv;
        int code;

        text_append(&content, "name,gpus\n");
        text_append(&content, cases[i].content);
        csv = opened(content.bytes);
        code = trace_csv_next(&csv, &error);
        if (code == 1)
            code = trace_csv_number(&csv, GPUS, 0, 64, &gpus, &error);
        assert_int_equal(code, BERTH_ERROR_INVALID);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(gpus, 7);
        trace_csv_finish(&csv);
        text_finish(&content);
    }
}

static void zero_bytes_are_refused(void **state)
{
    static const char content[] = "name,gpus\na,1\nb\0c,2\n";
    struct berth_error error = BERTH_ERROR_INIT;
    struct trace_csv csv;

    (void)state;
    assert_int_equal(parse_bytes(content, sizeof(content) - 1, &csv, &error), BERTH_ERROR_INVALID);
    assert_string_equal(error.message, "trace.csv:3: expected text, got a zero byte");
}

static void check_long(const char *begin, size_t length, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text content = {0};
    struct trace_csv csv;
    int code;

    text_append(&content, "name,gpus\n");
    text_append(&content, begin);
    text_append_repeated(&content, 'x', length - strlen(begin) - 2);
    text_append(&content, *begin == '"' ? "\",1\nb,2\n" : ",1\nb,2\n");
    csv = opened(content.bytes);
    code = trace_csv_next(&csv, &error);
    assert_int_equal(code, message == NULL ? 1 : BERTH_ERROR_INVALID);
    if (message != NULL)
        assert_string_equal(error.message, message);
    trace_csv_finish(&csv);
    text_finish(&content);
}

static void long_rows_are_refused(void **state)
{
    static const char message[] = "trace.csv:2: expected a row of at most 64 KiB, got a longer one";

    (void)state;
    check_long("", TRACE_CSV_ROW_MAX, NULL);
    check_long("", TRACE_CSV_ROW_MAX + 1, message);
    check_long("", 2 * TRACE_CSV_ROW_MAX, message);
    check_long("\"", 2 * TRACE_CSV_ROW_MAX, message);
}

static void many_columns_are_refused(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text content = {0};
    struct trace_csv csv;

    (void)state;
    text_append(&content, "name,gpus");
    text_append_repeated(&content, ',', TRACE_CSV_COLUMNS_MAX - 2);
    csv = opened(content.bytes);
    trace_csv_finish(&csv);
    text_append_char(&content, ',');
    assert_int_equal(parse(content.bytes, &csv, &error), BERTH_ERROR_INVALID);
    assert_string_equal(error.message, "trace.csv:1: expected at most 256 columns, got 257");
    text_finish(&content);
}

static void files_are_read(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct trace_csv csv;

    (void)state;
    assert_int_equal(trace_csv_open("no/such/file", columns, COUNT(columns), &csv, &error),
                     BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "cannot read no/such/file: No such file or directory");
    assert_null(csv.fields);
    assert_int_equal(trace_csv_open("/dev/null", columns, COUNT(columns), &csv, &error),
                     BERTH_ERROR_INVALID);
    assert_string_equal(error.message,
                        "/dev/null:1: expected a header with column names, got none");
}

/* Random content is read to its end or refused with a line number. */
static void any_bytes_end(void **state)
{
    static const char pieces[] = ",,\"\"\r\n\n1ab\xef";
    struct test_random random = {5};

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct text content = {0};
        struct trace_csv csv;
        int code;

        text_append(&content, "name,gpus\n");
        for (size_t i = test_random_below(&random, 40); i > 0; i--)
            text_append_char(&content, pieces[test_random_below(&random, sizeof(pieces) - 1)]);
        csv = opened(content.bytes);
        while ((code = trace_csv_next(&csv, &error)) > 0) {
            assert_non_null(trace_csv_text(&csv, NAME));
            assert_true(strlen(trace_csv_text(&csv, GPUS)) < content.length);
        }
        if (code < 0)
            assert_memory_equal(error.message, "trace.csv:", 10);
        trace_csv_finish(&csv);
        text_finish(&content);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_go_by_name),
        cmocka_unit_test(optional_columns_may_be_missing),
        cmocka_unit_test(other_systems_write_lines_too),
        cmocka_unit_test(a_file_may_end_in_blank_lines),
        cmocka_unit_test(quoted_fields_may_hold_anything),
        cmocka_unit_test(decimals_are_exact),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(bad_rows_are_refused),
        cmocka_unit_test(zero_bytes_are_refused),
        cmocka_unit_test(long_rows_are_refused),
        cmocka_unit_test(many_columns_are_refused),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(any_bytes_end),
    };

    return cmocka_run_group_tests_name("sim_csv", tests, NULL, NULL);
}
