/* SPDX-License-Identifier: Apache-2.0
 *
 * berth run: runs a command under a lease. If nothing needs supervision, berth becomes the command
 * (one exec, no extra process), and the command's process holds the lease.
 */
#include "cli/run/run.h"

#include <stdio.h>

#include "base/error.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/kept_commands.h"
#include "cli/output.h"
#include "cli/run/claim_await.h"
#include "cli/run/command_launch.h"
#include "cli/run/leased_command.h"

/* The best-effort replica that this process runs, if any. */
struct started_replica {
    bool is_replica;
    uint32_t number;
};

/* Returns true if berth must stay as the command's parent: to stop it at a time limit or a notice,
 * to run several copies, to label their output, or to hold the master port. */
static bool needs_supervisor(const struct command_launch *launch, const struct request *request)
{
    if (command_launch_copies(launch) > 1 || launch->plan.ranks || launch->options->label)
        return true;
    return launch->claim != NULL && (request->opportunistic || launch->claim->grant.expires.known ||
                                     launch->claim->grant.stay);
}

/* Runs the copies and supervises them. Returns the exit code. */
static int supervise_copies(const struct command_launch *launch, struct session *session)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct labelled_output *labels;
    int code;

    if (command_launch_make_labels(launch, &labels, &error) < 0)
        return command_launch_fail(launch, &error);
    code = leased_command_run(launch, labels, session);
    /* Release the lease first: a slow reader of the output must not keep the devices. */
    if (launch->claim != NULL)
        leased_command_release(launch->claim, session, code);
    return leased_command_finish_labels(launch->verb, labels, code);
}

/* Runs the command with the claim's devices, or on the CPU. Returns the exit code, unless berth
 * becomes the command. */
static int launch_command(struct command_launch *launch, struct session *session)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    if (launch->verbose && launch->claim != NULL)
        claim_await_print_grant(launch->claim);
    else if (launch->verbose)
        fprintf(stderr, "berth: no device can ever match the request: running on the CPU\n");
    if (command_launch_init(launch, &error) < 0)
        code = command_launch_fail(launch, &error);
    else if (needs_supervisor(launch, &launch->options->request))
        code = supervise_copies(launch, session);
    else
        code = command_launch_exec(launch);
    command_launch_finish(launch);
    return code;
}

/* Claims devices and launches the command. Returns the exit code, or a negative error code. */
static int claim_and_launch(struct run_line *line, struct pool_connection *connection,
                            const struct started_replica *replica, const struct command_launch *how,
                            struct berth_error *error)
{
    struct command_launch with_claim = *how;
    const struct claim_facts facts = {
        .request = &line->request.request,
        .hold = LEASE_HOLD_PROCESS,
        .argv = line->argv,
        .inventory = connection->address.inventory,
    };
    /* Only the first replica shows the waiting line. */
    const struct claim_await_options awaiting = {
        .verbose = line->verbose,
        .quiet = replica->number > 0,
        .notify = line->notify,
    };
    struct client_claim claim;
    int code = claim_init(&claim, &facts, error);

    if (code == 0)
        code = claim_await(&claim, &connection->session, &awaiting, error);
    if (code == 0) {
        kept_commands_add(&connection->address, &claim);
        with_claim.claim = &claim;
    }
    if (code == 0 || (line->request.request.or_cpu &&
                      (code == BERTH_ERROR_IMPOSSIBLE || code == BERTH_ERROR_NO_DEVICE)))
        code = launch_command(&with_claim, &connection->session);
    claim_finish(&claim);
    return code;
}

static int run_line(const struct verb *verb, struct run_line *line,
                    const struct started_replica *replica)
{
    const struct command_launch how = {
        .verb = verb->name,
        .argv = line->argv,
        .options = &line->request,
        .verbose = line->verbose,
        .warns = line->warns,
        .is_replica = replica->is_replica,
        .replica = replica->number,
    };
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_connection connection;
    int code = connect_open_for_request(&connection, &line->request,
                                        replica->number == 0 ? verb->name : NULL, &error);

    if (code == 0) {
        code = claim_and_launch(line, &connection, replica, &how, &error);
        connect_close(&connection);
    }
    return code < 0 ? run_fail(verb, &error) : code;
}

static int run_run_verb(int argc, char **argv)
{
    const struct started_replica none = {0};
    struct run_line line;
    int code;

    if (run_line_parse(&verb_run, &line, argc, argv, &code))
        code = run_line_is_best_effort(&line) ? run_replicas(&line)
                                              : run_line(&verb_run, &line, &none);
    run_line_finish(&line);
    return code;
}

int run_replica(struct run_line *line, uint32_t number)
{
    const struct started_replica replica = {.is_replica = true, .number = number};

    line->request.request.replicas = 1;
    line->request.request.scheduling = SCHEDULING_UNSAID;
    line->request.label = false; /* the parent process labels the output */
    return run_line(&verb_run, line, &replica);
}

static const struct option_set *const run_sets[] = {
    &run_option_set,
    &request_device_set,
    &request_replica_set,
    &request_sharing_set,
    &request_mps_set,
    &request_queue_set,
    &request_waiting_set,
    &notify_option_set,
    &request_command_set,
    &request_mask_set,
    &request_cpu_set,
    &request_job_file_set,
    NULL,
};

const struct verb verb_run = {
    .name = "run",
    .usage = "[options] [request] [--] COMMAND [ARGUMENT...]",
    .summary = "run a command with devices of its own",
    .description =
        "Waits for devices, runs the command so that it sees only these devices, and frees them "
        "when the command ends. The exit code is the command's, or: 120 no device can ever match "
        "the request; 122 the lease was taken back; 123 not granted in time, or cancelled; 124 the "
        "time limit was reached; 125 berth failed; 126 the command cannot be executed; 127 the "
        "command was not found.",
    .examples = "berth run -n 2 python train.py\n"
                "berth run -n 1 --min-free 40G --time 4h -- ./eval.sh\n",
    .sets = run_sets,
    .operand = OPERAND_COMMAND,
    .run = run_run_verb,
};
