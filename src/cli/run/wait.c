/* SPDX-License-Identifier: Apache-2.0
 *
 * berth wait: waits for the end of a job, or until a request can be granted at once.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "cli/claim.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/ids.h"
#include "cli/run/notify.h"
#include "cli/run/run.h"
#include "cli/run/state_files.h"

static const struct option_set *const wait_sets[] = {
    &request_device_set, &request_joint_replica_set, &request_sharing_set,
    &request_mps_set,    &request_queue_set,         &request_waiting_set,
    &notify_option_set,  &request_file_set,          NULL,
};

struct wait_options {
    struct request_options request;
    struct notify_options notify;
};

/* Waits until the request can be granted. Returns EXIT_GOOD, or a negative error code. */
static int wait_for_request(struct pool_connection *connection, struct wait_options *options,
                            struct berth_error *error)
{
    const struct claim_facts facts = {
        .request = &options->request.request,
        .inventory = connection->address.inventory,
    };
    int64_t requested_at = clock_now();
    struct wire_message answer;
    struct notify notify;
    struct client_claim claim;
    int code = claim_init_test(&claim, &facts, error);

    if (code == 0)
        code = notify_init(&notify, &options->notify, facts.request->name, error);
    if (code == 0)
        code = session_request(&connection->session, &claim.question, WIRE_DONE, &answer, error);
    if (code == 0) {
        wire_message_finish(&answer);
        notify_possible(&notify, clock_now() - requested_at);
    }
    claim_finish(&claim);
    return code;
}

/* Reads the exit code from the job's file, for jobs that the daemon no longer knows or whose exit
 * code it did not get. Returns the exit code, EXIT_KILLED if there is only a log, or
 * BERTH_ERROR_NOT_FOUND if there is no such job. */
static int read_exit_code(struct session *session, uint64_t id, struct berth_error *error)
{
    struct state_files files;
    char *pool;
    int exit_code;
    int code = state_files_pool(session, &pool, error);

    if (code < 0)
        return code;
    code = state_files_find(pool, id, &files, error);
    free(pool);
    if (code < 0)
        return code;
    code = state_files_read_exit(&files, &exit_code, error);
    if (code == 0)
        code = exit_code;
    else if (code == BERTH_ERROR_NOT_FOUND && access(files.log, F_OK) == 0)
        code = EXIT_KILLED;
    state_files_finish(&files);
    return code;
}

/* Returns the exit code of a job that ended without reporting one. */
static int guess_exit_code(struct session *session, const struct wire_message *ended,
                           struct berth_error *error)
{
    int code = exit_code_of_end(ended->end);

    if (code == EXIT_GOOD)
        code = read_exit_code(session, ended->id, error);
    /* The job was not submitted, so its exit code is not recorded. */
    return code == BERTH_ERROR_NOT_FOUND ? EXIT_GOOD : code;
}

/* Waits for the end of a claim or lease. Returns the exit code, or a negative error code. */
static int wait_for_end(struct session *session, uint64_t id, struct berth_error *error)
{
    struct wire_message question = {.type = WIRE_WATCH, .id = id};
    struct wire_message ended;
    int code = session_request(session, &question, WIRE_ENDED, &ended, error);

    if (code == BERTH_ERROR_NOT_FOUND) {
        code = read_exit_code(session, id, error);
        if (code == BERTH_ERROR_NOT_FOUND)
            error_set(error, code, "no job has the id %" PRIu64, id);
        return code;
    }
    if (code < 0)
        return code;
    if (ended.exit_code.known && ended.exit_code.value <= UINT8_MAX)
        code = (int)ended.exit_code.value;
    else
        code = guess_exit_code(session, &ended, error);
    wire_message_finish(&ended);
    return code;
}

/* Returns true if the options contain a request. */
static bool has_request(const struct request_options *options)
{
    struct request_options nothing;
    bool same;

    request_options_init(&nothing);
    same = request_equals(&options->request, &nothing.request) && options->count_model == NULL;
    request_options_finish(&nothing);
    return !same;
}

/* Reads the id, if one is given. Sets *ret_id to 0 for a request. */
static int parse_operands(const struct wait_options *options, int count, char **operands,
                          uint64_t *ret_id, struct berth_error *error)
{
    *ret_id = 0;
    if (count == 0)
        return 0;
    if (count > 1)
        return error_set(error, BERTH_ERROR_INVALID, "expected one id, got %d", count);
    if (has_request(&options->request))
        return error_set(error, BERTH_ERROR_INVALID, "expected an id or a request, got both");
    if (options->notify.command != NULL)
        return error_set(error, BERTH_ERROR_INVALID, "--notify: expected a request, got an id");
    return id_parse(operands[0], ret_id, error);
}

static int wait_for_operand(struct wait_options *options, int count, char **operands,
                            struct berth_error *error)
{
    struct pool_connection connection;
    uint64_t id;
    int code = parse_operands(options, count, operands, &id, error);

    if (code == 0)
        code = request_options_complete(&options->request, error);
    if (code == 0)
        code = connect_open_for_request(&connection, &options->request, verb_wait.name, error);
    if (code < 0)
        return code;
    code = id != 0 ? wait_for_end(&connection.session, id, error)
                   : wait_for_request(&connection, options, error);
    connect_close(&connection);
    return code;
}

static int run_wait_verb(int argc, char **argv)
{
    struct wait_options options = {0};
    struct option_binding bindings[OPTION_SETS_MAX] = {
        {&notify_option_set, &options.notify},
    };
    size_t count = verb_bind_request(&verb_wait, bindings, 1, &options.request);
    struct berth_error error = BERTH_ERROR_INIT;
    int operand;
    int code;

    request_options_init(&options.request);
    if (verb_begin_operands(&verb_wait, bindings, count, argc, argv, &operand, &code)) {
        code = wait_for_operand(&options, argc - operand, argv + operand, &error);
        if (code < 0)
            code = run_fail(&verb_wait, &error);
    }
    request_options_finish(&options.request);
    return code;
}

const struct verb verb_wait = {
    .name = "wait",
    .usage = "ID | [request]",
    .summary = "wait until a job ends or devices are free",
    .description =
        "With an id: waits until the job, lease or claim ends, and returns the job's exit code. "
        "With a request: waits until it can be granted at once, but allocates nothing. The exit "
        "code is then 0, or 120 if no device can ever match, or 123 if --wait or --nonblock ended "
        "the wait.",
    .examples = "berth wait 12\n"
                "berth wait -n 4 --wait 30m && echo now\n",
    .sets = wait_sets,
    .operand = OPERAND_JOB,
    .run = run_wait_verb,
};
