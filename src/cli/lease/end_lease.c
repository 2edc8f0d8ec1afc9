/* SPDX-License-Identifier: Apache-2.0
 *
 * berth release and berth cancel: end leases, and remove claims from the queue. Both take several
 * ids. An id that fails is reported on its own line, and the other ids are still handled.
 */
#include "base/error.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/ids.h"
#include "cli/output.h"
#include "cli/verbs.h"

/* An action on one id. Returns 0 or a negative code with an error. */
typedef int id_action(struct session *session, uint64_t id, struct berth_error *error);

static int cancel_claim(struct session *session, uint64_t id, struct berth_error *error)
{
    struct wire_message question = {.type = WIRE_CANCEL, .id = id};
    struct wire_message answer;
    int code = session_request(session, &question, WIRE_DONE, &answer, error);

    if (code == 0)
        wire_message_finish(&answer);
    return code;
}

static int stop_lease(struct session *session, uint64_t id, struct berth_error *error)
{
    struct wire_message question = {.type = WIRE_STOP, .id = id};
    struct wire_message answer;
    int code = session_request(session, &question, WIRE_DONE, &answer, error);

    if (code == 0)
        wire_message_finish(&answer);
    return code;
}

/* Waits until the lease's last process has ended, so that its devices are free. */
static int wait_for_end(struct session *session, uint64_t id, struct berth_error *error)
{
    struct wire_message question = {.type = WIRE_WATCH, .id = id};
    struct wire_message ended;
    int code = session_request(session, &question, WIRE_ENDED, &ended, error);

    if (code == 0)
        wire_message_finish(&ended);
    return code == BERTH_ERROR_NOT_FOUND ? 0 : code;
}

/* Applies one action to all ids. Sets each id that failed to 0, so that later actions skip it;
 * removes all if the daemon does not answer. Returns true if all succeeded. */
static bool act_on_ids(const struct verb *verb, id_action *action, struct session *session,
                       struct parsed_ids *ids)
{
    bool good = true;
    uint64_t *id;

    vector_for_each (id, ids) {
        struct berth_error error = BERTH_ERROR_INIT;
        int code = *id == 0 ? 0 : action(session, *id, &error);

        if (code == 0)
            continue;
        error_wrap(&error, code, "%s", verb->name);
        output_refusal(&error);
        good = false;
        *id = 0;
        if (session->socket >= 0 && !session->silence.is_silent)
            continue;
        /* Without a daemon, the other ids and actions would fail in the same way. */
        ids->count = 0;
        break;
    }
    return good;
}

/* Applies all actions to all ids. Returns the exit code, or a negative error code. */
static int run_actions(const struct verb *verb, const struct connect_options *options,
                       struct parsed_ids *ids, id_action *const *actions, struct berth_error *error)
{
    int exit_code = EXIT_GOOD;
    struct pool_connection connection;
    int code = connect_open(&connection, options->inventory, error);

    if (code < 0)
        return code;
    for (; *actions != NULL; actions++) {
        if (!act_on_ids(verb, *actions, &connection.session, ids))
            exit_code = EXIT_BERTH;
    }
    connect_close(&connection);
    return exit_code;
}

/* Runs a verb: applies each of the actions, ended by NULL, to all ids before the next action.
 * Returns the exit code: EXIT_BERTH if an id failed. */
static int run_id_verb(const struct verb *verb, int argc, char **argv, id_action *const *actions)
{
    struct connect_options options = {0};
    const struct option_binding binding = {&connect_option_set, &options};
    struct berth_error error = BERTH_ERROR_INIT;
    struct parsed_ids ids = {0};
    int operand;
    int code;

    if (!verb_begin_operands(verb, &binding, 1, argc, argv, &operand, &code))
        return code;
    code = ids_parse(argc, argv, operand, &ids, &error);
    if (code == 0)
        code = run_actions(verb, &options, &ids, actions, &error);
    if (code < 0) {
        error_wrap(&error, code, "%s", verb->name);
        code = output_refusal(&error);
    }
    vector_finish(&ids);
    return code;
}

static int run_release_verb(int argc, char **argv)
{
    /* Stop all leases before waiting for the first. */
    static id_action *const actions[] = {stop_lease, wait_for_end, NULL};

    return run_id_verb(&verb_release, argc, argv, actions);
}

static int run_cancel_verb(int argc, char **argv)
{
    static id_action *const actions[] = {cancel_claim, NULL};

    return run_id_verb(&verb_cancel, argc, argv, actions);
}

static const struct option_set *const id_sets[] = {&connect_option_set, NULL};

const struct verb verb_release = {
    .name = "release",
    .usage = "[options] LEASE...",
    .summary = "end leases",
    .description = "Ends leases. Running commands get SIGTERM first, and SIGKILL after a grace "
                   "period. Returns when the devices are free.",
    .examples = "berth release 12\n"
                "berth release 12 13 14\n",
    .sets = id_sets,
    .operand = OPERAND_LEASE,
    .run = run_release_verb,
};

const struct verb verb_cancel = {
    .name = "cancel",
    .usage = "[options] CLAIM...",
    .summary = "remove claims from the queue",
    .description = "Removes claims from the queue. The commands that wait for them end with exit "
                   "code 123. To end a lease that was already granted, use 'berth release'.",
    .examples = "berth cancel 15\n"
                "berth cancel 15 16\n",
    .sets = id_sets,
    .operand = OPERAND_CLAIM,
    .run = run_cancel_verb,
};
