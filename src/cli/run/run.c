/* SPDX-License-Identifier: Apache-2.0
 *
 * berth run: a command under a lease. Where nothing has to be watched, berth becomes the command,
 * which then holds the lease itself: one process, one exec.
 */
#include "cli/run/run.h"

#include <stdio.h>

#include "base/error.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/run/claim_await.h"
#include "cli/run/command_launch.h"
#include "cli/run/leased_command.h"

/* A copy of a run whose replicas are claims of their own. */
struct started_replica {
    bool is_replica;
    uint32_t number;
};

/* Whether somebody has to stay beside the command: to end it, to hear of it, because there are
 * several, to label what they print, or to hold the port where ranks meet. */
static bool needs_supervisor(const struct command_launch *launch, const struct request *request)
{
    if (command_launch_copies(launch) > 1 || launch->plan.ranks || launch->options->label)
        return true;
    return launch->claim != NULL && (request->opportunistic || launch->claim->grant.expires.known ||
                                     launch->claim->grant.stay);
}

/* Runs the copies and stays beside them. Returns the exit code. */
static int supervise_copies(const struct command_launch *launch, struct session *session)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct labelled_output *labels;
    int code;

    if (command_launch_make_labels(launch, &labels, &error) < 0)
        return command_launch_fail(launch, &error);
    code = leased_command_run(launch, labels, session);
    /* Who has not read all yet does not keep the devices. */
    if (launch->claim != NULL)
        leased_command_release(launch->claim, session, code);
    return leased_command_finish_labels(launch->verb, labels, code);
}

/* Runs the command under the claim, or on the CPU. Returns the exit code, if at all. */
static int launch_command(struct command_launch *launch, struct session *session)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    if (launch->verbose && launch->claim != NULL)
        claim_await_print_grant(launch->claim);
    else if (launch->verbose)
        fprintf(stderr, "berth: no device here could ever do: on the CPU\n");
    if (command_launch_init(launch, &error) < 0)
        code = command_launch_fail(launch, &error);
    else if (needs_supervisor(launch, &launch->options->request))
        code = supervise_copies(launch, session);
    else
        code = command_launch_exec(launch);
    command_launch_finish(launch);
    return code;
}

static bool is_impossible(int code)
{
    return code == BERTH_ERROR_IMPOSSIBLE || code == BERTH_ERROR_NO_DEVICE;
}

/* With a connection: claims and launches. Returns the exit code, or a negative error code. */
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
    /* One line is enough for all copies. */
    const struct claim_await_options awaiting = {
        .verbose = line->verbose,
        .quiet = replica->number > 0,
        .notify = line->notify,
    };
    struct client_claim claim;
    int code = claim_init(&claim, &facts, error);

    if (code == 0)
        code = claim_await(&claim, &connection->session, &awaiting, error);
    if (code == 0)
        with_claim.claim = &claim;
    if (code == 0 || (is_impossible(code) && line->request.request.or_cpu))
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
    int code = connect_open_for_request(&connection, &line->request, &error);

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
    line->request.label = false; /* whoever has started us does that */
    return run_line(&verb_run, line, &replica);
}

static const struct option_set *const run_sets[] = {
    &run_option_set,
    &notify_option_set,
    &request_option_set,
    NULL,
};

const struct verb verb_run = {
    .name = "run",
    .usage = "[options] [request] [--] COMMAND [ARGUMENT...]",
    .summary = "run a command with devices of its own",
    .description =
        "Waits for devices, runs the command with them visible and no others, and gives them back "
        "when it ends, however it ends. The exit code is the command's own, or 120 when no device "
        "here could ever satisfy the request, 122 when the lease was taken back, 123 when it was "
        "not granted in time or cancelled, 124 when the time limit ended it, 125 when berth itself "
        "failed, 126 or 127 when the command could not be executed or was not found.",
    .sets = run_sets,
    .operand = OPERAND_COMMAND,
    .run = run_run_verb,
};
