/* SPDX-License-Identifier: Apache-2.0
 *
 * Spec files: every accepted file, of any combination of fields, is a valid request, and sizes,
 * durations and shares have the same values as on the command line.
 */
#include "support/unit.h"

#include "spec/workload.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "support/random.h"
#include "support/spec/documents.h"
#include "support/temporary_directory.h"

static struct request_options parse(const char *text)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct request_options options;
    char *copy = exact_copy(text, strlen(text));

    if (workload_parse(FILE_NAME, copy, strlen(text), &options, &error) < 0)
        fail_msg("%s: %s", text, error.message);
    free(copy);
    return options;
}

static int try_parse(const char *text)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct request_options options;
    struct request request;
    int code = workload_parse(FILE_NAME, text, strlen(text), &options, &error);

    if (code < 0) {
        assert_int_equal(error.code, code);
        if (strncmp(error.message, FILE_NAME ":", strlen(FILE_NAME ":")) != 0)
            fail_msg("%s: %s", text, error.message);
        return code;
    }
    if (request_options_resolve(&options, &request, &error) < 0)
        fail_msg("accepted an invalid request: %s: %s", error.message, text);
    request_options_finish(&options);
    return 0;
}

/* ---- Defaults ---- */

static void what_is_left_out_is_as_in_zlayer(void **state)
{
    struct request_options options = parse("gpu: {}");
    struct request request;
    struct request wanted;

    (void)state;
    request_init(&wanted);
    wanted.vendor_rule = VENDOR_RULE_EXACT;
    wanted.vendor = VENDOR_NVIDIA;
    assert_true(request_equals(&options.request, &wanted));
    wanted.scheduling = SCHEDULING_BEST_EFFORT;
    assert_int_equal(request_options_resolve(&options, &request, NULL), 0);
    assert_true(request_equals(&request, &wanted));
    assert_false(options.uuid || options.pin || options.label);
    assert_null(options.interface);
    assert_null(options.spec);
    assert_int_equal(options.master_port, 0);
    assert_int_equal(options.command.count, 0);
    assert_int_equal(options.notes.count, 0);
    request_options_finish(&options);
}

/* An option may request ranks when the file does not. */
static void options_override_the_default_scheduling(void **state)
{
    struct request_options options = parse("{replicas: 2, gpu: {}}");
    struct request request;

    (void)state;
    options.request.ranks = true;
    assert_int_equal(request_options_resolve(&options, &request, NULL), 0);
    assert_int_equal(request.scheduling, SCHEDULING_UNSAID);
    options.request.ranks = false;
    options.request.scheduling = SCHEDULING_SPREAD;
    assert_int_equal(request_options_resolve(&options, &request, NULL), 0);
    assert_int_equal(request.scheduling, SCHEDULING_SPREAD);
    request_options_finish(&options);
}

static void notes_cannot_steer_a_terminal(void **state)
{
    static const char text[] = "gpu: {vendor: \"a\\e[31m\\nb\"}";
    struct request_options options;

    (void)state;
    assert_int_equal(workload_parse("a\nb\x1B[31m", text, strlen(text), &options, NULL), 0);
    assert_int_equal(options.notes.count, 1);
    assert_string_equal(options.notes.items[0],
                        "a\uFFFDb\uFFFD[31m:1:15: note: vendor: 'a?[31m?b' is not a known vendor, "
                        "so only devices that have just a DRI render node match");
    request_options_finish(&options);
}

/* ---- Files and standard input ---- */

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void files_are_read(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct request_options options = {.master_port = 4711};

    (void)state;
    assert_int_equal(workload_read("none.yaml", &options, &error), BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "cannot read none.yaml: No such file or directory");
    assert_int_equal(workload_read(".", &options, &error), BERTH_ERROR_IO);
    assert_string_equal(error.message, "cannot read .: it is a directory");
    assert_int_equal(options.master_port, 4711);
    write_file("good.yaml", "name: a\ngpu: {count: 2}\n");
    assert_int_equal(workload_read("good.yaml", &options, &error), 0);
    assert_string_equal(options.request.name, "a");
    assert_int_equal(options.request.gpus.min, 2);
    request_options_finish(&options);
}

/* Reads the file as standard input. */
static int read_standard(const char *path, struct request_options *options,
                         struct berth_error *error)
{
    int kept = dup(STDIN_FILENO);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int code;

    assert_true(kept >= 0 && file >= 0);
    assert_int_equal(dup2(file, STDIN_FILENO), STDIN_FILENO);
    close(file);
    code = workload_read("-", options, error);
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    close(kept);
    return code;
}

static void standard_input_is_read(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct request_options options;

    (void)state;
    assert_string_equal(workload_file_name("-"), "<stdin>");
    assert_string_equal(workload_file_name("-x"), "-x");
    write_file("good.yaml", "{\"gpu\": {\"mode\": \"vm\"}}");
    assert_int_equal(read_standard("good.yaml", &options, &error), 0);
    assert_string_equal(options.notes.items[0], "<stdin>:1:18: note: mode: has no effect on Linux");
    request_options_finish(&options);
    write_file("bad.yaml", "gpu: {count: 0}");
    assert_int_equal(read_standard("bad.yaml", &options, &error), BERTH_ERROR_RANGE);
    assert_string_equal(error.message,
                        "<stdin>:1:14: count: expected a whole number from 1 to 1000000, got 0");
    assert_int_equal(read_standard(".", &options, &error), BERTH_ERROR_IO);
    assert_string_equal(error.message, "cannot read <stdin>: it is a directory");
}

/* ---- Random files ---- */

static const char *const any_values[] = {
    "1",     "2",           "0",      "1-1",     "2-4",    "4-2", "all",        "true",
    "false", "True",        "mps",    "any",     "nvidia", "amd", "time-slice", "exclusive",
    "gang",  "best-effort", "spread", "nccl",    "one",    "0.5", "1.0",        "8GiB",
    "1h30m", "/a/b",        "a/b",    "nvidia0", "{}",     "[]",  "[a, b]",     "[nvidia0]",
    "~",     "\"8.0\"",     "\"1\"",  "low",     "native", "''",  "1:00:00",    "010",
    "-1",    "\"a\\0b\"",   "x",      "90",
};

static void append_record(struct text *out, const struct record *record, struct test_random *random,
                          unsigned likely);

/* Returns a random choice. */
static const char *any_choice(const struct choice *choices, struct test_random *random)
{
    size_t count = 0;

    while (choices[count].name != NULL)
        count++;
    return choices[test_random_below(random, count)].name;
}

/* Writes a random value; seven of eight are valid for their field alone. */
static void append_field(struct text *out, const struct field *field, struct test_random *random,
                         unsigned likely)
{
    text_append_format(out, "%s: ", field->name);
    if (test_random_below(random, 8) == 0)
        text_append(out, any_values[test_random_below(random, COUNT(any_values))]);
    else if (field->record != NULL)
        append_record(out, field->record, random, likely);
    else if (field->choices != NULL)
        text_append(out, any_choice(field->choices, random));
    else
        text_append(out, field->example);
}

/* Writes a record; each field is present in `likely` of ten records, the block `gpu` in nearly
 * all. */
static void append_record(struct text *out, const struct record *record, struct test_random *random,
                          unsigned likely)
{
    bool first = true;

    text_append_char(out, '{');
    for (size_t i = 0; i < record->field_count; i++) {
        bool needed = strcmp(record->fields[i].name, "gpu") == 0;

        if (test_random_below(random, 10) >= (needed ? 9 : likely))
            continue;
        text_append(out, first ? "" : ", ");
        append_field(out, &record->fields[i], random, likely);
        first = false;
    }
    text_append_char(out, '}');
}

static void what_is_taken_makes_sense(void **state)
{
    struct test_random random = {7};
    struct text text = {0};
    size_t taken = 0;
    size_t contradictory = 0;

    (void)state;
    for (unsigned round = 0; round < 10000; round++) {
        int code;

        text_clear(&text);
        append_record(&text, &workload_record, &random, 1 + round % 5);
        code = try_parse(text_string(&text));
        taken += code == 0;
        contradictory += code == BERTH_ERROR_INVALID;
    }
    text_finish(&text);
    assert_true(taken > 500);
    assert_true(contradictory > 2000);
}

/* Tries every pair of values of every pair of fields that may contradict each other. */
static void every_combination_makes_sense_or_is_refused(void **state)
{
    static const char *const counts[] = {"", "count: '1'", "count: 1-1", "count: 2", "count: all"};
    static const char *const vendors[] = {"", "vendor: nvidia", "vendor: any", "vendor: amd"};
    static const char *const sharings[] = {"", "sharing: exclusive", "sharing: mps",
                                           "sharing: time-slice"};
    static const char *const schedulings[] = {"", "scheduling: best-effort", "scheduling: gang",
                                              "scheduling: spread"};
    static const char *const shares[] = {"", "share: 0.5", "memory: 1G", "mps_pipe_dir: /a",
                                         "mps_log_dir: /a"};
    static const char *const distributed[] = {"", "distributed: {}", "distributed: ~",
                                              "distributed: {rank_mask: one}"};
    static const char *const tops[] = {"",
                                       "replicas: 1",
                                       "replicas: 2",
                                       "label: true",
                                       "replicas: 1, label: true",
                                       "replicas: 2, label: true",
                                       "opportunistic: true",
                                       "priority: low",
                                       "opportunistic: true, priority: low",
                                       "opportunistic: false, priority: low"};
    static const struct {
        const char *const *values;
        size_t count;
    } axes[] = {
        {counts, COUNT(counts)},     {vendors, COUNT(vendors)},
        {sharings, COUNT(sharings)}, {schedulings, COUNT(schedulings)},
        {shares, COUNT(shares)},     {distributed, COUNT(distributed)},
        {tops, COUNT(tops)},
    };
    size_t total = 1;
    size_t taken = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(axes); i++)
        total *= axes[i].count;
    for (size_t number = 0; number < total; number++) {
        const char *chosen[COUNT(axes)];
        struct text text = {0};
        size_t rest = number;

        for (size_t i = 0; i < COUNT(axes); i++) {
            chosen[i] = axes[i].values[rest % axes[i].count];
            rest /= axes[i].count;
        }
        text_append_format(&text, "{%s%sgpu: {", chosen[6], *chosen[6] == '\0' ? "" : ", ");
        for (size_t i = 0; i < 6; i++)
            text_append_format(&text, "%s%s", chosen[i], *chosen[i] == '\0' ? "" : ", ");
        text_append(&text, "}}");
        taken += try_parse(text_string(&text)) == 0;
        text_finish(&text);
    }
    assert_true(taken > total / 20 && taken < total / 2);
}

/* ---- Numbers with units ---- */

static struct optional_number read_with(const struct request_options *options, size_t offset)
{
    return *(const struct optional_number *)((const char *)options + offset);
}

/* Writes a random number of at most `max` digits, sometimes with a fraction. */
static void append_digits(struct text *text, struct test_random *random, uint64_t max)
{
    for (uint64_t left = 1 + test_random_below(random, max); left > 0; left--)
        text_append_char(text, (char)('0' + test_random_below(random, 10)));
    if (test_random_below(random, 3) > 0)
        return;
    text_append_char(text, '.');
    for (uint64_t left = 1 + test_random_below(random, 4); left > 0; left--)
        text_append_char(text, (char)('0' + test_random_below(random, 10)));
}

/* Reads `value` at this place of a file. Returns false if it is refused. */
static bool read_value(const char *format, const char *value, size_t offset,
                       struct optional_number *ret_number)
{
    struct request_options options;
    struct text text = {0};
    int code;

    for (; *format != '\0'; format++) {
        if (*format == '@')
            text_append(&text, value);
        else
            text_append_char(&text, *format);
    }
    code = workload_parse(FILE_NAME, text_string(&text), text.length, &options, NULL);
    text_finish(&text);
    if (code < 0)
        return false;
    *ret_number = read_with(&options, offset);
    request_options_finish(&options);
    return true;
}

static void sizes_mean_what_they_mean_elsewhere(void **state)
{
    static const char *const units[] = {"",   "B",   "K",  "kib", "KB",  "M",  "MiB", "mb",
                                        " G", "GiB", "GB", "T",   "TiB", "TB", "P",   "E"};
    struct test_random random = {11};
    size_t taken = 0;

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        struct optional_number found = {0};
        struct text size = {0};
        uint64_t wanted;

        append_digits(&size, &random, 17);
        text_append(&size, units[test_random_below(&random, COUNT(units))]);
        if (read_value("gpu: {min_free: '@'}", text_string(&size),
                       offsetof(struct request_options, request.min_free), &found)) {
            assert_int_equal(quantity_parse_size(text_string(&size), &wanted, NULL), 0);
            assert_true(found.known && found.value == wanted);
            assert_true(wanted < UINT64_C(1000) << 40);
            taken++;
        }
        text_finish(&size);
    }
    assert_true(taken > 2000);
}

static void durations_mean_what_they_mean_elsewhere(void **state)
{
    static const char *const units[] = {"", "d", "h", "m", "s", "ms", ":", "-"};
    struct test_random random = {13};
    size_t taken = 0;

    (void)state;
    for (unsigned round = 0; round < 30000; round++) {
        struct optional_number found = {0};
        struct text duration = {0};
        int64_t wanted;

        for (uint64_t parts = 1 + test_random_below(&random, 4); parts > 0; parts--) {
            append_digits(&duration, &random, parts == 1 ? 13 : 6);
            text_append(&duration, units[test_random_below(&random, COUNT(units))]);
        }
        if (read_value("{gpu: {}, wait: '@'}", text_string(&duration),
                       offsetof(struct request_options, request.wait), &found)) {
            assert_int_equal(quantity_parse_duration(text_string(&duration), &wanted, NULL), 0);
            assert_true(found.known && (int64_t)found.value == wanted);
            taken++;
        }
        text_finish(&duration);
    }
    assert_true(taken > 2000);
}

static void shares_are_rounded(void **state)
{
    struct test_random random = {17};

    (void)state;
    for (unsigned round = 0; round < 5000; round++) {
        struct optional_number found = {0};
        uint64_t billionths = 1 + test_random_below(&random, 1000000000);
        uint64_t wanted = (billionths + 500) / 1000;
        char share[32];

        snprintf(share, sizeof(share), "%llu.%09llu", (unsigned long long)(billionths / 1000000000),
                 (unsigned long long)(billionths % 1000000000));
        assert_true(read_value("gpu: {sharing: mps, share: @}", share,
                               offsetof(struct request_options, request.share), &found));
        assert_int_equal(found.value, wanted == 0 ? 1 : wanted);
    }
}

#define IN_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_is_as_in_zlayer),
        cmocka_unit_test(options_override_the_default_scheduling),
        cmocka_unit_test(notes_cannot_steer_a_terminal),
        IN_DIRECTORY(files_are_read),
        IN_DIRECTORY(standard_input_is_read),
        cmocka_unit_test(what_is_taken_makes_sense),
        cmocka_unit_test(every_combination_makes_sense_or_is_refused),
        cmocka_unit_test(sizes_mean_what_they_mean_elsewhere),
        cmocka_unit_test(durations_mean_what_they_mean_elsewhere),
        cmocka_unit_test(shares_are_rounded),
    };

    return cmocka_run_group_tests_name("workload", tests, NULL, NULL);
}
