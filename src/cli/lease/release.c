/* SPDX-License-Identifier: Apache-2.0
 *
 * berth release: ends leases, and returns once they are over.
 */
#include "cli/lease/id_verbs.h"

static int stop_lease(struct session *session, uint64_t id, struct berth_error *error)
{
    struct wire_message question = {.type = WIRE_STOP, .id = id};
    struct wire_message answer;
    int code = session_request(session, &question, WIRE_DONE, &answer, error);

    if (code == 0)
        wire_message_finish(&answer);
    return code;
}

/* Waits until nothing of it is left, so that its devices are free. */
static int wait_for_end(struct session *session, uint64_t id, struct berth_error *error)
{
    struct wire_message question = {.type = WIRE_WATCH, .id = id};
    struct wire_message ended;
    int code = session_request(session, &question, WIRE_ENDED, &ended, error);

    if (code == 0)
        wire_message_finish(&ended);
    return code == BERTH_ERROR_NOT_FOUND ? 0 : code;
}

static int run_release_verb(int argc, char **argv)
{
    /* All are stopped before the first is waited for. */
    static id_action *const actions[] = {stop_lease, wait_for_end, NULL};

    return id_verb_run(&verb_release, argc, argv, actions);
}

const struct verb verb_release = {
    .name = "release",
    .usage = "ID...",
    .summary = "end leases",
    .description = "Ends leases. A command that runs under one is stopped first: SIGTERM, and "
                   "SIGKILL after a grace. Returns when the devices are free.",
    .sets = id_verb_sets,
    .operand = OPERAND_LEASE,
    .run = run_release_verb,
};
