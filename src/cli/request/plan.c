/* SPDX-License-Identifier: Apache-2.0
 *
 * berth plan: shows the devices that a request would get and why, or why it gets none.
 */
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/json.h"
#include "cli/exit_codes.h"
#include "cli/machine_source.h"
#include "cli/output.h"
#include "cli/request/plan_pool.h"
#include "cli/verbs.h"
#include "engine/placement/placement.h"
#include "engine/policy/policies.h"
#include "spec/option_types.h"
#include "spec/request_options.h"

struct plan_options {
    struct device_id_list busy;
    struct device_id_list must;
    bool json;
};

static const struct option plan_rows[] = {
    {.name = "busy",
     .argument = "ID,...",
     .help = "treat these devices as busy",
     .offset = offsetof(struct plan_options, busy),
     .parse = option_type_ids},
    {.name = "must",
     .argument = "ID,...",
     .help = "the plan must include these devices",
     .offset = offsetof(struct plan_options, must),
     .parse = option_type_ids},
    {.name = "json",
     .help = "print JSON (berth.plan/1)",
     .offset = offsetof(struct plan_options, json),
     .parse = option_type_flag},
};

static const struct option_set plan_option_set = {
    .heading = "Options",
    .options = plan_rows,
    .count = COUNT(plan_rows),
};

static const struct option_set *const plan_sets[] = {
    &plan_option_set, &request_device_set, &request_replica_set, &request_sharing_set,
    &request_mps_set, &request_queue_set,  &request_file_set,    NULL,
};

/* Finds the slots of these ids. Fails if an id is not present. The caller finishes the set, also on
 * failure. */
static int find_slots(const struct machine *machine, const struct device_id_list *present,
                      struct device_id_list *ids, const char *option, struct bitset *ret_slots,
                      struct berth_error *error)
{
    const struct device_id *id;
    int code;

    if (bitset_init(ret_slots, machine->devices.count) < 0)
        return error_set_memory(error);
    code = device_id_list_resolve(ids, VENDOR_UNNAMED, present, error);
    for (id = ids->items; code == 0 && id < ids->items + ids->count; id++) {
        size_t slot = device_list_find(&machine->devices, *id);

        if (slot == machine->devices.count)
            code = device_id_list_refuse(present, *id, error);
        else
            bitset_add(ret_slots, slot);
    }
    return code < 0 ? error_wrap(error, code, "--%s", option) : 0;
}

static const char *format_id(const struct machine *machine, size_t slot,
                             struct device_id_text *buffer)
{
    *buffer = device_id_format(machine->devices.items[slot].id);
    return buffer->text;
}

static void write_json(const struct machine *machine, const struct placement *placement,
                       const struct policy *policy, struct text *out)
{
    struct device_id_text id;
    const size_t *slot;
    struct json json;

    json_start(&json, out, JSON_INDENTED);
    json_object_begin(&json);
    json_string_member(&json, "schema", "berth.plan/1");
    json_key(&json, "satisfiable");
    json_bool(&json, placement->satisfiable);
    json_key(&json, "now");
    json_bool(&json, placement->now);
    json_key(&json, "devices");
    json_array_begin(&json);
    vector_for_each (slot, &placement->slots)
        json_string(&json, format_id(machine, *slot, &id));
    json_array_end(&json);
    json_string_member(&json, "policy", policy->name);
    json_key(&json, "score");
    if (placement->now && placement->rated)
        json_signed(&json, placement->score);
    else
        json_null(&json);
    json_string_member(&json, "why", text_string(&placement->why));
    json_object_end(&json);
    json_finish(&json);
}

/* Appends the devices, replica by replica. */
static void write_replicas(const struct machine *machine, const struct placement *placement,
                           struct text *out)
{
    const size_t *slot = placement->slots.items;
    struct device_id_text id;

    for (size_t replica = 0; replica < placement->replicas; replica++) {
        text_append(out, replica == 0 ? ": " : " | ");
        for (size_t i = 0; i < placement->sizes.items[replica]; i++) {
            text_append(out, i == 0 ? "" : ",");
            text_append(out, format_id(machine, *slot++, &id));
        }
    }
}

static void write_text(const struct machine *machine, const struct placement *placement,
                       struct text *out)
{
    if (!placement->satisfiable)
        text_append(out, "never");
    else if (!placement->now)
        text_append(out, "not now");
    else
        text_append(out, "now");
    write_replicas(machine, placement, out);
    text_append_format(out, "\nwhy: %s\n", text_string(&placement->why));
}

/* Makes the placement and prints it. Returns an exit code, or a negative error code. */
static int print_answer(const struct plan_options *options, const struct plan_pool *pool,
                        const struct placement_question *question, struct berth_error *error)
{
    struct placement placement;
    struct text out = {0};
    int code = placement_find(question, &placement, error);
    bool satisfiable;

    if (code < 0)
        return code;
    if (pool->live)
        plan_pool_explain(pool, question, &placement);
    out.failed = text_failed(&placement.why);
    satisfiable = placement.satisfiable;
    if (options->json)
        write_json(question->machine, &placement, question->policy, &out);
    else
        write_text(question->machine, &placement, &out);
    placement_finish(&placement);
    code = output_write(&out);
    text_finish(&out);
    return code == EXIT_GOOD && !satisfiable ? EXIT_IMPOSSIBLE : code;
}

/* Prints problems of the scan to stderr. They do not change the exit code. */
static void print_problems(const struct problem_list *problems)
{
    struct text out = {0};

    machine_source_write_problems(problems, "berth: ", &out);
    fputs(text_string(&out), stderr);
    text_finish(&out);
}

/* Scans the machine and queries the pool, if a daemon runs. With a daemon, a failed scan does not
 * matter: the daemon knows the devices. Returns 0, or an exit code after printing the error. */
static int scan_machine_and_pool(const struct request_options *request,
                                 struct machine_source *source, struct machine *machine,
                                 struct plan_pool *pool)
{
    struct berth_error scan_error = BERTH_ERROR_INIT;
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_report report = {0};
    int scan_code = machine_source_scan(source, &report, &scan_error);
    int code;

    *machine = report.machine;
    report.machine = (struct machine){0};
    code = plan_pool_find(request, machine, source->is_virtual, pool, &error);
    if (code == 0 && !pool->live && scan_code < 0) {
        code = scan_code;
        error = scan_error;
    }
    if (code == 0 && !pool->live)
        print_problems(&report.problems);
    machine_report_finish(&report);
    if (code == 0)
        return 0;
    error_wrap(&error, code, "plan");
    return output_refusal(&error);
}

/* Opens the source of devices and scans it. Returns as scan_machine_and_pool(). */
static int find_machine_and_pool(const struct request_options *request, struct machine *machine,
                                 struct plan_pool *pool)
{
    struct machine_source source = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    int code = machine_source_open(&source, request->inventory, NULL, &error);

    if (code < 0) {
        error_wrap(&error, code, "plan");
        return output_error(&error);
    }
    source.without_processes = true;
    code = scan_machine_and_pool(request, &source, machine, pool);
    machine_source_close(&source);
    return code;
}

/* Resolves the ids of the request, --busy and --must, then prints the answer. Returns as
 * print_answer(). */
static int apply_constraints(struct plan_options *options, const struct plan_pool *pool,
                             struct placement_question question, struct request *request,
                             struct berth_error *error)
{
    struct device_id_list present = {0};
    struct bitset busy = {0};
    struct bitset must = {0};
    int code = device_list_ids(&question.machine->devices, &present);

    if (code < 0)
        error_set_memory(error);
    if (code == 0)
        code = request_resolve_devices(request, &present, error);
    if (code == 0)
        code = find_slots(question.machine, &present, &options->busy, "busy", &busy, error);
    if (code == 0)
        code = find_slots(question.machine, &present, &options->must, "must", &must, error);
    if (code == 0) {
        if (pool->live)
            bitset_unite(&busy, &pool->busy);
        question.reason = pool->reasons;
        question.left = pool->left;
        question.busy = &busy;
        question.must = &must;
        code = print_answer(options, pool, &question, error);
    }
    bitset_finish(&busy);
    bitset_finish(&must);
    vector_finish(&present);
    return code;
}

/* Finds the policy, the machine and its pool, then makes the plan. Returns as print_answer(). */
static int make_plan(struct plan_options *options, struct request_options *request,
                     struct berth_error *error)
{
    struct machine machine = {0};
    struct placement_question question = {.machine = &machine, .request = &request->request};
    struct plan_pool pool = {0};
    int code = policy_find(request->request.policy, &question.policy, error);

    if (code < 0)
        return code;
    if (question.policy == NULL)
        question.policy = policy_default(&request->request);
    code = find_machine_and_pool(request, &machine, &pool);
    if (code == 0)
        code = apply_constraints(options, &pool, question, &request->request, error);
    plan_pool_finish(&pool);
    machine_finish(&machine);
    return code;
}

static int run_plan_verb(int argc, char **argv)
{
    struct plan_options options = {0};
    struct request_options request;
    struct option_binding bindings[OPTION_SETS_MAX] = {
        {&plan_option_set, &options},
    };
    size_t count = verb_bind_request(&verb_plan, bindings, 1, &request);
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    request_options_init(&request);
    if (verb_begin(&verb_plan, bindings, count, argc, argv, &code)) {
        code = request_options_complete(&request, &error);
        if (code == 0)
            code = make_plan(&options, &request, &error);
        if (code < 0) {
            error_wrap(&error, code, "plan");
            code = output_error(&error);
        }
    }
    request_options_finish(&request);
    vector_finish(&options.busy);
    vector_finish(&options.must);
    return code;
}

const struct verb verb_plan = {
    .name = "plan",
    .usage = "[options] [request]",
    .summary = "show which devices a request would get, and why",
    .description = "A dry run: shows the devices that a request would get now and why, or why it "
                   "must wait. Allocates nothing and starts no daemon. If a daemon runs, its "
                   "leases and its queue are taken into account. The exit code is 0, or 120 if "
                   "this pool can never satisfy the request.",
    .examples = "berth plan -n 2\n"
                "berth plan -n 4 --busy nvidia0 --json\n",
    .sets = plan_sets,
    .run = run_plan_verb,
};
