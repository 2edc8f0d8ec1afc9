/* SPDX-License-Identifier: Apache-2.0
 *
 * berth sim queue: how long jobs wait.
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
#include "cli/programs/sim_verbs.h"
#include "engine/policy/policies.h"
#include "sim/progress.h"
#include "sim/queue_replay.h"

/* What is asked, and what came of it. */
struct question {
    const struct queue_options *options;
    struct progress progress;
    struct queue_settings settings;
    struct queue_outcome outcome;
    int64_t took;
};

static int take_number(const char *name, const char *string, uint64_t max, uint32_t *ret_number,
                       struct berth_error *error)
{
    uint64_t number = 0;
    int code;

    if (string == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "--%s: expected a number, got none", name);
    code = quantity_parse_number(string, 1, max, &number, error);
    if (code < 0) {
        error_wrap(error, BERTH_ERROR_INVALID, "--%s", name);
        return BERTH_ERROR_INVALID;
    }
    *ret_number = (uint32_t)number;
    return 0;
}

static int take_options(const struct queue_options *given, struct queue_settings *settings,
                        struct berth_error *error)
{
    int code;

    settings->order = given->order;
    settings->estimate = given->estimate;
    settings->policy = &policy_pack;
    if (given->jobs == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "--jobs: expected a trace, got none");
    code = take_number("nodes", given->nodes, QUEUE_NODES_MAX, &settings->nodes, error);
    if (code == 0)
        code = take_number("gpus-per-node", given->gpus, QUEUE_NODE_GPUS_MAX,
                           &settings->gpus_per_node, error);
    if (code == 0 && given->policy != NULL) {
        code = policy_find(given->policy, &settings->policy, error);
        if (code < 0)
            error_wrap(error, code, "--policy");
    }
    return code;
}

static void show_progress(void *context, size_t ended, size_t all)
{
    struct question *question = context;

    progress_show(&question->progress, "jobs", ended, all);
}

static int replay(struct question *question, struct berth_error *error)
{
    struct job_list jobs = {0};
    int64_t began = clock_now();
    int code = job_trace_read(question->options->jobs, &jobs, error);

    question->settings.progress = show_progress;
    question->settings.context = question;
    progress_begin(&question->progress);
    if (code == 0)
        code = queue_replay(question->options->jobs, &jobs, &question->settings, &question->outcome,
                            error);
    progress_end(&question->progress);
    vector_finish(&jobs);
    question->took = clock_now() - began;
    return code;
}

/* Durations in seconds to the millisecond. */
static void seconds(struct json *json, const char *key, int64_t duration)
{
    json_key(json, key);
    json_decimal(json, (duration + 500000) / 1000000, 3);
}

static void write_json(const struct question *question, struct text *out)
{
    const struct queue_outcome *outcome = &question->outcome;
    struct json json;

    json_start(&json, out, JSON_INDENTED);
    json_object_begin(&json);
    json_string_member(&json, "schema", "berth.sim-queue/1");
    json_number_member(&json, "jobs", true, outcome->jobs);
    json_number_member(&json, "nodes", true, question->settings.nodes);
    json_number_member(&json, "gpus_per_node", true, question->settings.gpus_per_node);
    json_string_member(&json, "order", choice_name(queue_order_names, question->settings.order));
    json_string_member(&json, "estimate",
                       choice_name(queue_estimate_names, question->settings.estimate));
    json_string_member(&json, "policy", question->settings.policy->name);
    json_key(&json, "wait_s");
    json_object_begin(&json);
    seconds(&json, "mean", outcome->wait_mean);
    seconds(&json, "p50", outcome->wait_p50);
    seconds(&json, "p99", outcome->wait_p99);
    seconds(&json, "max", outcome->wait_max);
    json_object_end(&json);
    json_number_member(&json, "reservations", true, outcome->promised);
    json_number_member(&json, "broken_reservations", true, outcome->broken_reservations);
    json_key(&json, "utilization");
    json_decimal(&json, (outcome->utilization + 50) / 100, 4);
    seconds(&json, "seconds", question->took);
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

static int write_table(const struct question *question, struct text *out)
{
    const struct queue_settings *settings = &question->settings;
    const struct queue_outcome *outcome = &question->outcome;
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
    struct queue_options given = {.order = QUEUE_EASY};
    const struct option_binding binding = {&queue_option_set, &given};
    struct question question = {.options = &given};
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};
    int code;

    if (!verb_begin(&verb_sim_queue, &binding, 1, argc, argv, &code))
        return code;
    code = take_options(&given, &question.settings, &error);
    if (code == 0)
        code = replay(&question, &error);
    if (code < 0) {
        error_wrap(&error, code, "sim queue");
        return output_error(&error);
    }
    if (given.json)
        write_json(&question, &out);
    else
        code = write_table(&question, &out);
    if (code < 0) {
        text_finish(&out);
        error_set_memory(&error);
        return output_error(&error);
    }
    code = output_write(&out);
    text_finish(&out);
    return code;
}
