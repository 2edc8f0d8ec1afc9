/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/command_launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cdi_files.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "launch/exec_command.h"
#include "launch/pin.h"
#include "model/mps_directories.h"

static struct rank_plan make_plan(const struct command_launch *launch)
{
    const struct request_options *options = launch->options;
    const struct request *request = &options->request;
    int backend = options->backend == BACKEND_UNSAID ? BACKEND_NCCL : (int)options->backend;
    struct rank_plan plan = {
        .replicas = request->replicas,
        /* Without devices: the requested minimum. */
        .each = request->gpus.all ? 1 : request->gpus.min,
        .ranks = request->ranks,
        .only_own = options->rank_mask == RANK_MASK_ONE || request->sharing == SHARING_MPS,
        .backend = choice_name(backend_names, backend),
        .interface = options->interface,
    };

    if (launch->claim != NULL) {
        const struct wire_message *grant = &launch->claim->grant;

        plan.replicas = grant->replicas;
        plan.each = (uint32_t)(grant->devices.count / grant->replicas);
        plan.devices = grant->devices.items;
    }
    return plan;
}

/* Prints the master port. A port in use is only a warning: the user may have started that process
 * on purpose. */
static void print_master_port(const struct command_launch *launch)
{
    if (launch->port.is_taken && launch->warns)
        fprintf(stderr, "berth: master port %u is in use by another process\n",
                (unsigned)launch->port.number);
    if (launch->verbose)
        fprintf(stderr, "berth: world size %" PRIu32 ", master port %u\n",
                command_launch_copies(launch), (unsigned)launch->port.number);
}

/* Returns true if a vendor's CDI file can name one of the devices. Devices of an inventory without
 * nodes and uuids are never in such a file. */
static bool has_real_devices(const struct device_list *devices)
{
    const struct device *device;

    vector_for_each (device, devices) {
        if (device->nodes.count > 0 || device->uuid != NULL)
            return true;
    }
    return false;
}

static int find_cdi(struct command_launch *launch, struct berth_error *error)
{
    if (launch->claim == NULL || !has_real_devices(&launch->claim->grant.devices))
        return 0;
    return cdi_files_read(launch->verbose, &launch->cdi, error);
}

int command_launch_init(struct command_launch *launch, struct berth_error *error)
{
    int code;

    launch->plan = make_plan(launch);
    if (rank_plan_copies(&launch->plan) > REQUEST_COUNT_MAX)
        return error_set(error, BERTH_ERROR_LIMIT,
                         "the command would run %" PRIu64 " times, but the maximum is %d",
                         rank_plan_copies(&launch->plan), REQUEST_COUNT_MAX);
    code = find_cdi(launch, error);
    if (code < 0 || !launch->plan.ranks)
        return code;
    code = master_port_choose((uint16_t)launch->options->master_port, &launch->port, error);
    if (code < 0)
        return code;
    launch->plan.port = launch->port.number;
    print_master_port(launch);
    return 0;
}

void command_launch_finish(struct command_launch *launch)
{
    master_port_finish(&launch->port);
    cdi_registry_finish(&launch->cdi);
}

uint32_t command_launch_copies(const struct command_launch *launch)
{
    return (uint32_t)rank_plan_copies(&launch->plan);
}

uint32_t command_launch_label(const struct command_launch *launch, uint32_t number)
{
    return launch->is_replica ? launch->replica : number;
}

int command_launch_make_labels(const struct command_launch *launch,
                               struct labelled_output **ret_labels, struct berth_error *error)
{
    const struct labelled_output_options facts = {
        .count = command_launch_copies(launch),
        .numbers = launch->is_replica ? launch->replica_count : command_launch_copies(launch),
        .output = STDOUT_FILENO,
        .error = STDERR_FILENO,
    };

    if (launch->options->label)
        return labelled_output_create(&facts, ret_labels, error);
    *ret_labels = NULL;
    return 0;
}

static struct launch_facts make_facts(const struct command_launch *launch,
                                      const struct rank_copy *copy)
{
    const struct client_claim *claim = launch->claim;
    struct launch_facts facts = {
        .vendors = UINT32_MAX, /* hide the GPUs of all vendors */
        .devices = copy->devices,
        .device_count = copy->device_count,
        .uuid = launch->options->uuid,
        .has_replica = launch->is_replica || launch->plan.replicas > 1,
        .replica = launch->is_replica ? launch->replica : copy->replica,
        .rank = launch->plan.ranks ? &copy->rank : NULL,
    };

    if (claim != NULL) {
        facts.lease = claim->id;
        facts.vendors = claim->grant.vendors;
        facts.socket = claim->grant.about.socket;
        facts.inventory = claim->question.about.inventory;
        facts.cdi = &launch->cdi;
    }
    return facts;
}

/* Makes the environment of a copy that shares its only device through MPS. */
static int make_mps_environment(const struct command_launch *launch, struct launch_facts *facts,
                                struct string_list *ret_environment, struct berth_error *error)
{
    const struct request *request = &launch->options->request;
    const struct mps_directory_source place = {launch->claim->grant.mps_root, request};
    struct text pipe = {0};
    struct text log = {0};
    int code;

    if (place.root == NULL || facts->device_count != 1)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected one device and a directory for MPS from the pool, got %zu%s",
                         facts->device_count, place.root == NULL ? " and no directory" : "");
    mps_directories(&place, facts->devices[0].id, &pipe, &log);
    facts->mps = &(struct mps_facts){
        .pipe_dir = text_string(&pipe),
        .log_dir = text_string(&log),
        .share = request->share,
        .memory = request->memory,
    };
    if (text_failed(&pipe) || text_failed(&log))
        code = error_set_memory(error);
    else
        code = launch_environment(facts, environ, ret_environment, error);
    facts->mps = NULL;
    text_finish(&pipe);
    text_finish(&log);
    return code;
}

/* Chooses the CPUs near the copy's devices. Without suitable CPUs the command runs unpinned. */
static void pin_copy(const struct command_launch *launch, const struct rank_copy *copy,
                     struct prepared_copy *prepared)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (!launch->options->pin || copy->near_count == 0)
        return;
    prepared->is_pinned = pin_choose(copy->near, copy->near_count, &prepared->cpus, &error) == 0;
    if (!prepared->is_pinned && launch->verbose)
        fprintf(stderr, "berth: cannot pin the command: %s\n", error.message);
}

int command_launch_prepare(const struct command_launch *launch, uint32_t number,
                           struct prepared_copy *ret_prepared, struct berth_error *error)
{
    struct rank_copy copy = rank_plan_copy(&launch->plan, number);
    struct launch_facts facts = make_facts(launch, &copy);
    bool is_mps = launch->options->request.sharing == SHARING_MPS && launch->claim != NULL;
    struct prepared_copy prepared = {0};
    int code = is_mps ? make_mps_environment(launch, &facts, &prepared.environment, error)
                      : launch_environment(&facts, environ, &prepared.environment, error);

    if (code < 0)
        return code;
    pin_copy(launch, &copy, &prepared);
    *ret_prepared = prepared;
    return 0;
}

void command_launch_finish_copy(struct prepared_copy *prepared)
{
    string_list_finish(&prepared->environment);
    if (prepared->is_pinned)
        bitset_finish(&prepared->cpus);
    *prepared = (struct prepared_copy){0};
}

int command_launch_fail(const struct command_launch *launch, struct berth_error *error)
{
    error_wrap(error, error->code, "%s", launch->verb);
    return output_refusal(error);
}

int command_launch_fail_start(const struct command_launch *launch, struct berth_error *error)
{
    command_launch_fail(launch, error);
    return exit_code_of_start(error->code);
}

int command_launch_exec(const struct command_launch *launch)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct prepared_copy prepared;
    char **inherited = environ;
    int code;

    if (command_launch_prepare(launch, 0, &prepared, &error) < 0)
        return command_launch_fail(launch, &error);
    if (prepared.is_pinned)
        pin_apply(&prepared.cpus);
    exec_command_error(launch->argv[0], exec_command(launch->argv, prepared.environment.items),
                       &error);
    code = command_launch_fail_start(launch, &error);
    environ = inherited;
    command_launch_finish_copy(&prepared);
    return code;
}
