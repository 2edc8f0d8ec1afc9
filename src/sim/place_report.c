/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/place_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text/json.h"
#include "base/text/table.h"
#include "base/text/utf8.h"

bool place_report_mean(const struct place_series *series, place_value *value, uint32_t percent,
                       int64_t *ret_mean)
{
    const struct place_run *run;
    int64_t sum = 0;
    int64_t count = 0;
    int64_t found;

    vector_for_each (run, series) {
        if (!value(run, percent, &found))
            continue;
        sum += found;
        count++;
    }
    if (count == 0)
        return false;
    *ret_mean = (2 * sum + count) / (2 * count);
    return true;
}

void place_report_describe_seeds(const struct place_report *report, struct text *out)
{
    const struct place_series *series = &report->series.items[0];
    uint64_t first = series->items[0].seed;

    if (series->count == 1)
        text_append_format(out, "seed %" PRIu64, first);
    else
        text_append_format(out, "mean of seeds %" PRIu64 " to %" PRIu64, first,
                           series->items[series->count - 1].seed);
}

static void write_values(struct json *json, const char *key, const struct place_series *series,
                         place_value *value)
{
    json_key(json, key);
    json_object_begin(json);
    for (size_t i = 0; i < PLACE_POINTS; i++) {
        char name[16];
        int64_t mean;

        snprintf(name, sizeof(name), "%" PRIu32, place_points[i]);
        json_key(json, name);
        if (place_report_mean(series, value, place_points[i], &mean))
            json_decimal(json, mean, PLACE_DECIMALS);
        else
            json_null(json);
    }
    json_object_end(json);
}

static void write_decimal(struct json *json, const char *key, int64_t value, unsigned decimals)
{
    json_key(json, key);
    json_decimal(json, value, decimals);
}

static void write_run(struct json *json, const char *name, struct place_run *run)
{
    const struct place_series alone = {.items = run, .count = 1};

    json_string_member(json, "trace", name);
    json_string_member(json, "policy", run->policy);
    json_number_member(json, "seed", true, run->seed);
    write_values(json, "allocated", &alone, place_replay_allocated);
    write_values(json, "frag", &alone, place_replay_fragmented);
    json_number_member(json, "failed", true, run->failed);
    json_number_member(json, "decisions", true, run->decisions);
    json_key(json, "decision_us");
    json_object_begin(json);
    write_decimal(json, "p50", run->decision_p50, 3);
    write_decimal(json, "p99", run->decision_p99, 3);
    write_decimal(json, "max", run->decision_max, 3);
    json_object_end(json);
    write_decimal(json, "seconds", run->took, 9);
}

/* Writes the runs of one policy and their mean. */
static void write_series(struct json *json, const char *name, const struct place_series *series)
{
    struct place_run *run;

    json_key(json, "runs");
    json_array_begin(json);
    vector_for_each (run, series) {
        json_object_begin(json);
        write_run(json, name, run);
        json_object_end(json);
    }
    json_array_end(json);
    json_key(json, "mean");
    json_object_begin(json);
    write_values(json, "allocated", series, place_replay_allocated);
    write_values(json, "frag", series, place_replay_fragmented);
    json_object_end(json);
}

static void write_policies(struct json *json, const struct place_report *report)
{
    const struct place_series *series;

    json_key(json, "policies");
    json_array_begin(json);
    vector_for_each (series, &report->series) {
        json_object_begin(json);
        json_string_member(json, "policy", series->policy);
        write_series(json, report->name, series);
        json_object_end(json);
    }
    json_array_end(json);
}

void place_report_write_json(const struct place_report *report, struct text *out)
{
    struct place_series *first = &report->series.items[0];
    struct json json;

    json_start(&json, out, JSON_INDENTED);
    json_object_begin(&json);
    json_string_member(&json, "schema", "berth.sim-place/1");
    if (report->series.count > 1)
        write_policies(&json, report);
    else if (report->several_seeds)
        write_series(&json, report->name, first);
    else
        write_run(&json, report->name, &first->items[0]);
    json_object_end(&json);
    json_finish(&json);
}

enum {
    COLUMN_POLICY,
    COLUMN_POINTS,
    COLUMN_FAILED = COLUMN_POINTS + PLACE_POINTS,
    COLUMN_FRAG,
    COLUMN_P50,
    COLUMN_P99,
    COLUMN_SECONDS,
    COLUMNS
};

/* The columns of the table, with one for each of place_points. */
static const struct table_column columns[COLUMNS] = {
    [COLUMN_POLICY] = {.heading = "POLICY", .priority = TABLE_ALWAYS},
    [COLUMN_POINTS + 0] = {.heading = "60%", .right = true, .hide_unknown = true, .priority = 2},
    [COLUMN_POINTS + 1] = {.heading = "80%", .right = true, .hide_unknown = true, .priority = 3},
    [COLUMN_POINTS + 2] = {.heading = "90%", .right = true, .hide_unknown = true, .priority = 6},
    [COLUMN_POINTS + 3] = {.heading = "100%", .right = true, .hide_unknown = true, .priority = 9},
    [COLUMN_POINTS + 4] = {.heading = "110%", .right = true, .hide_unknown = true, .priority = 4},
    [COLUMN_POINTS + 5] = {.heading = "120%", .right = true, .hide_unknown = true, .priority = 5},
    [COLUMN_POINTS + 6] = {.heading = "130%", .right = true, .hide_unknown = true, .priority = 9},
    [COLUMN_FAILED] = {.heading = "FAILED", .right = true, .priority = 8},
    [COLUMN_FRAG] = {.heading = "FRAG", .right = true, .hide_unknown = true, .priority = 7},
    [COLUMN_P50] = {.heading = "P50 US", .right = true, .priority = 1},
    [COLUMN_P99] = {.heading = "P99 US", .right = true, .priority = 7},
    [COLUMN_SECONDS] = {.heading = "SECONDS", .right = true, .priority = 7},
};

/* Adds a cell with value / 10^decimals, rounded to two decimals. `decimals` is at least 2. */
static void add_cell(struct table *table, enum style style, bool known, int64_t value,
                     unsigned decimals)
{
    struct text cell = {0};
    int64_t unit = 1;

    for (; decimals > 2; decimals--)
        unit *= 10;
    value = (value + unit / 2) / unit;
    text_append_format(&cell, "%" PRId64 ".%02" PRId64, value / 100, value % 100);
    table_cell_styled(table, style, known ? text_string(&cell) : NULL);
    text_finish(&cell);
}

/* Returns whether no other policy allocates more at this demand; false for a single policy. */
static bool is_best(const struct place_report *report, uint32_t percent, int64_t mean)
{
    const struct place_series *series;
    int64_t other;

    vector_for_each (series, &report->series) {
        if (place_report_mean(series, place_replay_allocated, percent, &other) && other > mean)
            return false;
    }
    return report->series.count > 1;
}

/* Adds the means of dropped pods and decision times. */
static void add_figures(struct table *table, const struct place_series *series)
{
    int64_t count = (int64_t)series->count;
    const struct place_run *run;
    uint64_t failed = 0;
    int64_t p50 = 0;
    int64_t p99 = 0;
    int64_t took = 0;
    int64_t frag = 0;
    bool known;

    vector_for_each (run, series) {
        failed += run->failed;
        p50 += run->decision_p50;
        p99 += run->decision_p99;
        took += run->took;
    }
    table_cell_format(table, "%" PRIu64, (failed + series->count / 2) / series->count);
    known =
        place_report_mean(series, place_replay_fragmented, place_points[PLACE_POINTS - 1], &frag);
    add_cell(table, STYLE_PLAIN, known, frag, PLACE_DECIMALS);
    add_cell(table, STYLE_PLAIN, true, p50 / count, 3);
    add_cell(table, STYLE_PLAIN, true, p99 / count, 3);
    add_cell(table, STYLE_PLAIN, true, took / count, 9);
}

static void add_row(struct table *table, const struct place_report *report,
                    const struct place_series *series)
{
    table_cell(table, series->policy);
    for (size_t i = 0; i < PLACE_POINTS; i++) {
        int64_t mean = 0;
        bool known = place_report_mean(series, place_replay_allocated, place_points[i], &mean);
        bool best = known && is_best(report, place_points[i], mean);

        add_cell(table, best ? STYLE_STRONG : STYLE_PLAIN, known, mean, PLACE_DECIMALS);
    }
    add_figures(table, series);
}

int place_report_write_table(const struct place_report *report, const struct terminal *terminal,
                             struct text *out)
{
    const struct pod_trace *trace = report->trace;
    const struct place_series *series;
    struct table table;
    int code;

    utf8_append_inert(out, report->name);
    text_append_format(out, ": %zu pods, %zu nodes, %" PRIu64 " GPUs, ", trace->pods.count,
                       trace->nodes.count, trace->capacity / TRACE_WHOLE);
    place_report_describe_seeds(report, out);
    text_append(out, "\nAllocated GPUs in %, by demand in %:\n\n");
    table_init(&table, columns, COLUMNS);
    vector_for_each (series, &report->series)
        add_row(&table, report, series);
    code = table_print(&table, terminal, out);
    table_finish(&table);
    return code;
}
