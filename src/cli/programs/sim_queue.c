/* SPDX-License-Identifier: Apache-2.0
 *
 * berth sim queue: measures how long jobs wait.
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/json.h"
#include "base/text/quantity.h"
#include "base/text/table.h"
#include "cli/output.h"
#include "cli/programs/sim_options.h"
#include "engine/policy/policies.h"
#include "sim/baselines/baselines.h"
#include "sim/progress.h"
#include "sim/queue_replay.h"

/* One simulation. */
struct sim_queue_work {
    const struct sim_queue_options *options;
    struct progress progress;
    struct queue_settings settings;
    struct queue_outcome outcome;
    int64_t took;
};

static int parse_number(const char *name, const char *string, uint64_t max, uint32_t *ret_number,
                        struct berth_error *error)
{
    uint64_t number = 0;
    int code;

    if (string == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "expected --%s N, got none", name);
    code = quantity_parse_number(string, 1, max, &number, error);
    if (code < 0) {
        error_wrap(error, BERTH_ERROR_INVALID, "--%s", name);
        return BERTH_ERROR_INVALID;
    }
    *ret_number = (uint32_t)number;
    return 0;
}

static int read_options(const struct sim_queue_options *given, struct queue_settings *settings,
                        struct berth_error *error)
{
    int code;

    settings->order = given->order;
    settings->estimate = given->estimate;
    settings->policy = &policy_pack;
    if (given->jobs == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "expected --jobs FILE, got none");
    code = parse_number("nodes", given->nodes, QUEUE_NODES_MAX, &settings->nodes, error);
    if (code == 0)
        code = parse_number("gpus-per-node", given->gpus, QUEUE_NODE_GPUS_MAX,
                            &settings->gpus_per_node, error);
    if (code == 0 && given->policy != NULL) {
        code = baseline_find(given->policy, &settings->policy, error);
        if (code < 0)
            error_wrap(error, code, "--policy");
    }
    return code;
}

static void show_progress(void *context, size_t ended, size_t all)
{
    struct sim_queue_work *work = context;

    progress_show(&work->progress, "jobs", ended, all);
}

static int replay_jobs(struct sim_queue_work *work, struct berth_error *error)
{
    struct job_list jobs = {0};
    int64_t began = clock_now();
    int code = job_trace_read(work->options->jobs, &jobs, error);

    work->settings.progress = show_progress;
    work->settings.context = work;
    progress_begin(&work->progress);
    if (code == 0)
        code = queue_replay(work->options->jobs, &jobs, &work->settings, &work->outcome, error);
    progress_end(&work->progress);
    vector_finish(&jobs);
    work->took = clock_now() - began;
    return code;
}

/* Writes a duration in seconds with milliseconds. */
static void write_seconds(struct json *json, const char *key, int64_t duration)
{
    json_key(json, key);
    json_decimal(json, (duration + 500000) / 1000000, 3);
}

static void write_json(const struct sim_queue_work *work, struct text *out)
{
    const struct queue_outcome *outcome = &work->outcome;
    struct json json;

    json_start(&json, out, JSON_INDENTED);
    json_object_begin(&json);
    json_string_member(&json, "schema", "berth.sim-queue/1");
    json_number_member(&json, "jobs", true, outcome->jobs);
    json_number_member(&json, "nodes", true, work->settings.nodes);
    json_number_member(&json, "gpus_per_node", true, work->settings.gpus_per_node);
    json_string_member(&json, "order", choice_name(queue_order_names, work->settings.order));
    json_string_member(&json, "estimate",
                       choice_name(queue_estimate_names, work->settings.estimate));
    json_string_member(&json, "policy", work->settings.policy->name);
    json_key(&json, "wait_s");
    json_object_begin(&json);
    write_seconds(&json, "mean", outcome->wait_mean);
    write_seconds(&json, "p50", outcome->wait_p50);
    write_seconds(&json, "p99", outcome->wait_p99);
    write_seconds(&json, "max", outcome->wait_max);
    json_object_end(&json);
    json_number_member(&json, "reservations", true, outcome->promised);
    json_number_member(&json, "broken_reservations", true, outcome->broken_reservations);
    json_key(&json, "utilization");
    json_decimal(&json, (outcome->utilization + 50) / 100, 4);
    write_seconds(&json, "seconds", work->took);
    json_object_end(&json);
    json_finish(&json);
}

static const struct table_column columns[] = {
    {.heading = "ORDER", .priority = TABLE_ALWAYS},
    {.heading = "ESTIMATE", .priority = 4},
    {.heading = "JOBS", .right = true, .priority = 3},
    {.heading = "GPUS", .right = true, .priority = 3},
    {.heading = "MEAN WAIT", .right = true, .priority = TABLE_ALWAYS},
    {.heading = "MEDIAN", .right = true, .priority = 5},
    {.heading = "99 %", .right = true, .priority = 5},
    {.heading = "LONGEST", .right = true, .priority = TABLE_ALWAYS},
    {.heading = "BROKEN", .right = true, .priority = 6},
    {.heading = "IN USE", .right = true, .priority = 2},
};

static int write_table(const struct sim_queue_work *work, struct text *out)
{
    const struct queue_settings *settings = &work->settings;
    const struct queue_outcome *outcome = &work->outcome;
    struct terminal terminal = terminal_detect(STDOUT_FILENO);
    struct table table;
    int code;

    table_init(&table, columns, COUNT(columns));
    table_cell(&table, choice_name(queue_order_names, settings->order));
    table_cell(&table, choice_name(queue_estimate_names, settings->estimate));
    table_cell_format(&table, "%zu", outcome->jobs);
    table_cell_format(&table, "%" PRIu32 "x%" PRIu32, settings->nodes, settings->gpus_per_node);
    table_cell(&table, quantity_format_duration(outcome->wait_mean).text);
    table_cell(&table, quantity_format_duration(outcome->wait_p50).text);
    table_cell(&table, quantity_format_duration(outcome->wait_p99).text);
    table_cell(&table, quantity_format_duration(outcome->wait_max).text);
    table_cell_format(&table, "%" PRIu64, outcome->broken_reservations);
    table_cell_format(&table, "%" PRIu32 ".%" PRIu32 " %%", outcome->utilization / 10000,
                      outcome->utilization / 1000 % 10);
    code = table_print(&table, &terminal, out);
    table_finish(&table);
    return code;
}

int sim_queue_run(int argc, char **argv)
{
    struct sim_queue_options given = {.order = QUEUE_EASY};
    const struct option_binding binding = {&sim_queue_option_set, &given};
    struct sim_queue_work work = {.options = &given};
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};
    int code;

    if (!verb_begin(&verb_sim_queue, &binding, 1, argc, argv, &code))
        return code;
    code = read_options(&given, &work.settings, &error);
    if (code == 0)
        code = replay_jobs(&work, &error);
    if (code < 0) {
        error_wrap(&error, code, "sim queue");
        return output_error(&error);
    }
    if (given.json)
        write_json(&work, &out);
    else
        code = write_table(&work, &out);
    if (code < 0) {
        text_finish(&out);
        error_set_memory(&error);
        return output_error(&error);
    }
    code = output_write(&out);
    text_finish(&out);
    return code;
}
