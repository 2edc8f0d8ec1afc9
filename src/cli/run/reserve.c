/* SPDX-License-Identifier: Apache-2.0
 *
 * berth reserve: holds devices without a command.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/run/claim_await.h"
#include "cli/run/command_launch.h"
#include "cli/run/exports.h"
#include "cli/run/run.h"
#include "model/mps_directories.h"
#include "spec/option_types.h"

struct reserve_options {
    struct optional_number time;
    struct notify_options notify;
    bool exports;
    bool verbose;
};

static const struct option reserve_rows[] = {
    {.name = "for",
     .argument = "DURATION",
     .help = "time limit, such as 4h; the same as --time",
     .offset = offsetof(struct reserve_options, time),
     .parse = option_type_duration},
    {.name = "export",
     .help = "print shell commands: eval \"$(berth reserve --for 1h --export)\"",
     .offset = offsetof(struct reserve_options, exports),
     .parse = option_type_flag},
    {.name = "verbose",
     .letter = 'v',
     .help = "print the waiting reasons on standard error",
     .offset = offsetof(struct reserve_options, verbose),
     .parse = option_type_flag},
};

static const struct option_set reserve_option_set = {
    .heading = "Options",
    .options = reserve_rows,
    .count = COUNT(reserve_rows),
};

static const struct option_set *const reserve_sets[] = {
    &reserve_option_set,
    &request_device_set,
    &request_joint_replica_set,
    &request_sharing_set,
    &request_mps_set,
    &request_queue_set,
    &request_waiting_set,
    &notify_option_set,
    &request_mask_set,
    &request_file_set,
    NULL,
};

/* Merges --for and --time, which mean the same. */
static int merge_time(const struct reserve_options *options, struct request *request,
                      struct berth_error *error)
{
    if (!options->time.known && !request->time.known)
        return error_set(error, BERTH_ERROR_INVALID, "expected --for DURATION, got none");
    if (options->time.known && request->time.known && options->time.value != request->time.value)
        return error_set(error, BERTH_ERROR_INVALID,
                         "--for: expected the same time as --time, %s, got %s",
                         quantity_format_duration((int64_t)request->time.value).text,
                         quantity_format_duration((int64_t)options->time.value).text);
    if (options->time.known)
        request->time = options->time;
    return 0;
}

/* Appends the output for the lease: its id, or shell commands. */
static int append_lease(struct client_claim *claim, const struct request_options *request,
                        bool exports, struct text *out, struct berth_error *error)
{
    struct client_claim whole = *claim;
    struct request_options adjusted = *request;
    struct command_launch launch = {.claim = &whole, .options = &adjusted};
    struct prepared_copy prepared;
    int code;

    if (!exports) {
        text_append_format(out, "%" PRIu64 "\n", claim->id);
        return 0;
    }
    whole.grant.replicas = 1; /* the shell sees the devices of all replicas */
    adjusted.request.ranks = false;
    adjusted.pin = false;
    code = command_launch_init(&launch, error);
    if (code == 0)
        code = command_launch_prepare(&launch, 0, &prepared, error);
    if (code == 0) {
        exports_write(environ, prepared.environment.items, out);
        command_launch_finish_copy(&prepared);
    }
    command_launch_finish(&launch);
    return code;
}

/* Claims devices, and appends the output for the lease. */
static int claim_and_describe(struct pool_connection *connection,
                              const struct reserve_options *options,
                              struct request_options *request, struct text *out,
                              struct berth_error *error)
{
    const struct claim_facts facts = {
        .request = &request->request,
        .hold = LEASE_HOLD_NOTHING,
        .inventory = connection->address.inventory,
    };
    const struct claim_await_options awaiting = {.verbose = options->verbose,
                                                 .notify = options->notify};
    struct client_claim claim;
    int code = claim_init(&claim, &facts, error);

    if (code == 0)
        code = claim_await(&claim, &connection->session, &awaiting, error);
    if (code == 0)
        code = append_lease(&claim, request, options->exports, out, error);
    claim_finish(&claim);
    return code;
}

/* Refuses --export for several MPS devices: with MPS a process can use only one device. */
static int refuse_exports(const struct reserve_options *options, const struct request *request,
                          struct berth_error *error)
{
    if (options->exports && request->sharing == SHARING_MPS &&
        !mps_directories_single_device(request))
        return error_set(error, BERTH_ERROR_INVALID,
                         "--export: expected one device with sharing mps, got several");
    return 0;
}

static int reserve_devices(const struct reserve_options *options, struct request_options *request,
                           struct text *out, struct berth_error *error)
{
    struct pool_connection connection;
    int code = merge_time(options, &request->request, error);

    if (code == 0)
        code = request_options_complete(request, error);
    if (code == 0)
        code = run_refuse_commands(request, error);
    if (code == 0)
        code = refuse_exports(options, &request->request, error);
    if (code == 0)
        code = connect_open_for_request(&connection, request, verb_reserve.name, error);
    if (code < 0)
        return code;
    code = claim_and_describe(&connection, options, request, out, error);
    connect_close(&connection);
    return code;
}

static int run_reserve_verb(int argc, char **argv)
{
    struct reserve_options options = {0};
    struct request_options request;
    struct option_binding bindings[OPTION_SETS_MAX] = {
        {&reserve_option_set, &options},
        {&notify_option_set, &options.notify},
    };
    size_t count = verb_bind_request(&verb_reserve, bindings, 2, &request);
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};
    int code;

    request_options_init(&request);
    if (verb_begin(&verb_reserve, bindings, count, argc, argv, &code)) {
        code = reserve_devices(&options, &request, &out, &error);
        code = code < 0 ? run_fail(&verb_reserve, &error) : output_write(&out);
    }
    text_finish(&out);
    request_options_finish(&request);
    return code;
}

const struct verb verb_reserve = {
    .name = "reserve",
    .usage = "--for DURATION [options] [request]",
    .summary = "hold devices without a command",
    .description = "Waits for devices and holds them until the time limit or 'berth release'. "
                   "Prints the id of the lease. Ctrl-C while waiting cancels the claim.",
    .examples = "berth reserve --for 4h -n 2\n"
                "eval \"$(berth reserve --for 1h --export)\"\n",
    .sets = reserve_sets,
    .run = run_reserve_verb,
};
