/* SPDX-License-Identifier: Apache-2.0 */
#include "top/action.h"

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"

void action_cancel(struct action *action)
{
    if (action->command.type != 0)
        session_close(&action->session);
    *action = (struct action){0};
}

int action_begin(struct action *action, const struct pool_address *address,
                 struct control_command command, struct berth_error *error)
{
    struct wire_message question = {.type = command.type, .id = command.id};
    int code = session_open_with_timeout(&action->session, address, DIAL_ONLY, 0, error);

    if (code < 0)
        return code;
    action->command = command;
    action->deadline = clock_now() + ACTION_TIMEOUT;
    question.number = session_next_number(&action->session);
    code = session_send(&action->session, &question, error);
    if (code < 0)
        action_cancel(action);
    return code;
}

int action_descriptor(const struct action *action)
{
    return action->command.type == 0 ? -1 : action->session.socket;
}

static int read_answer(const struct wire_message *answer, struct berth_error *error)
{
    if (answer->type == WIRE_DONE)
        return ACTION_DONE;
    if (answer->type == WIRE_REFUSED)
        return session_refusal(answer, error);
    return error_set(error, BERTH_ERROR_SYNTAX,
                     "cannot use the daemon's answer: unexpected message '%s'",
                     wire_type_name(answer->type));
}

int action_step(struct action *action, struct berth_error *error)
{
    struct wire_message answer;
    int code;

    if (action->command.type == 0)
        return ACTION_PENDING;
    code = session_receive(&action->session, 0, &answer, error);
    if (code == SESSION_NOTHING && clock_now() < action->deadline)
        return ACTION_PENDING;
    if (code == SESSION_NOTHING)
        code = error_set(error, BERTH_ERROR_IO, "the daemon does not answer");
    if (code == SESSION_MESSAGE) {
        code = read_answer(&answer, error);
        wire_message_finish(&answer);
    }
    action_cancel(action);
    return code;
}
