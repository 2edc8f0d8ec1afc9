/* SPDX-License-Identifier: Apache-2.0
 *
 * Best-effort replicas: each is a claim of its own. A process per replica waits, holds the lease
 * and releases it, so that the last replica can use the devices of the first. The parent only
 * supervises them: if one fails, it stops the others.
 */
#include <unistd.h>

#include "base/error.h"
#include "cli/claim.h"
#include "cli/connect.h"
#include "cli/run/leased_command.h"
#include "cli/run/run.h"
#include "launch/supervise.h"

/* Tests with the daemon whether one replica can ever be granted, so that a refusal is printed once
 * and not by each replica. */
static int test_one_replica(struct run_line *line, struct berth_error *error)
{
    struct request one;
    struct claim_facts facts = {.request = &one};
    struct wire_message answer;
    struct client_claim claim;
    struct pool_connection connection;
    int code = connect_open_for_request(&connection, &line->request, verb_run.name, error);

    if (code < 0)
        return code;
    one = line->request.request;
    one.replicas = 1;
    one.scheduling = SCHEDULING_UNSAID;
    one.nonblock = true;
    one.wait.known = false;
    facts.inventory = connection.address.inventory;
    code = claim_init_test(&claim, &facts, error);
    if (code == 0)
        code = session_request(&connection.session, &claim.question, WIRE_DONE, &answer, error);
    if (code == 0)
        wire_message_finish(&answer);
    claim_finish(&claim);
    connect_close(&connection);
    if (code == BERTH_ERROR_BUSY || code == BERTH_ERROR_TIMED_OUT)
        return 0;
    if (one.or_cpu && (code == BERTH_ERROR_IMPOSSIBLE || code == BERTH_ERROR_NO_DEVICE))
        return 0;
    return code;
}

struct copies {
    struct run_line *line;
    struct labelled_output *labels; /* NULL: none */
};

struct replica_copy {
    const struct copies *all;
    uint32_t number;
};

static int run_copy(void *context)
{
    const struct replica_copy *copy = context;

    if (copy->all->labels != NULL)
        labelled_output_abandon(copy->all->labels);
    return run_replica(copy->all->line, copy->number);
}

/* Implements command_copies.start. The context is a struct copies. */
static int start_copy(const void *context, struct launch_supervisor *supervisor, uint32_t number,
                      const struct launch_copy *streams)
{
    struct replica_copy copy = {context, number};
    struct launch_copy launch = *streams;
    struct berth_error error = BERTH_ERROR_INIT;

    launch.run = run_copy;
    launch.context = &copy;
    return launch_supervisor_start(supervisor, &launch, &error) < 0 ? run_fail(&verb_run, &error)
                                                                    : 0;
}

int run_replicas(struct run_line *line)
{
    struct copies all = {.line = line};
    struct command_copies copies = {
        .verb = verb_run.name,
        .count = line->request.request.replicas,
        .context = &all,
        .start = start_copy,
    };
    const struct labelled_output_options labels = {copies.count, copies.count, STDOUT_FILENO,
                                                   STDERR_FILENO};
    struct berth_error error = BERTH_ERROR_INIT;
    int code = test_one_replica(line, &error);

    if (code == 0 && line->request.label)
        code = labelled_output_create(&labels, &all.labels, &error);
    if (code < 0)
        return run_fail(&verb_run, &error);
    copies.labels = all.labels;
    code = leased_command_run_copies(&copies);
    return leased_command_finish_labels(copies.verb, all.labels, code);
}
