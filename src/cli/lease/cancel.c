/* SPDX-License-Identifier: Apache-2.0
 *
 * berth cancel: takes waiting claims out of the queue.
 */
#include "cli/lease/id_verbs.h"

static int cancel_claim(struct session *session, uint64_t id, struct berth_error *error)
{
    struct wire_message question = {.type = WIRE_CANCEL, .id = id};
    struct wire_message answer;
    int code = session_request(session, &question, WIRE_DONE, &answer, error);

    if (code == 0)
        wire_message_finish(&answer);
    return code;
}

static int run_cancel_verb(int argc, char **argv)
{
    static id_action *const actions[] = {cancel_claim, NULL};

    return id_verb_run(&verb_cancel, argc, argv, actions);
}

const struct verb verb_cancel = {
    .name = "cancel",
    .usage = "ID...",
    .summary = "take waiting claims out of the queue",
    .description = "Takes claims that wait out of the queue; the commands that wait for them end "
                   "with exit code 123. What was granted already is ended by 'berth release'.",
    .sets = id_verb_sets,
    .operand = OPERAND_CLAIM,
    .run = run_cancel_verb,
};
