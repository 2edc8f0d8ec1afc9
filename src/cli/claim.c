/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "launch/masks/inherited_masks.h"

static int choose_token(uint64_t token[2], struct berth_error *error)
{
    token[0] = token[1] = 0;
    while (token[0] == 0 && token[1] == 0) {
        ssize_t got = getrandom(token, 2 * sizeof(token[0]), 0);

        if (got < 0 && errno != EINTR)
            return error_set(error, BERTH_ERROR_IO, "cannot read random bytes: %s",
                             strerror(errno));
    }
    return 0;
}

/* Reads the lease that this process runs in; 0: none. */
static int find_parent(uint64_t *ret_parent, struct berth_error *error)
{
    const char *lease = getenv("BERTH_LEASE");

    *ret_parent = 0;
    if (lease == NULL || *lease == '\0')
        return 0;
    if (quantity_parse_number(lease, 1, UINT64_MAX, ret_parent, NULL) < 0)
        return error_set(error, BERTH_ERROR_IO, "BERTH_LEASE: expected the id of a lease, got %s",
                         quote(lease).text);
    return 0;
}

/* Appends the command and its arguments as one line, cut to WIRE_TEXT_MAX. */
static int join_arguments(char *const *argv, struct text *out, struct berth_error *error)
{
    for (char *const *word = argv; *word != NULL && out->length <= WIRE_TEXT_MAX; word++) {
        text_append(out, word == argv ? "" : " ");
        text_append_bytes(out, *word, strnlen(*word, WIRE_TEXT_MAX + 1));
    }
    if (text_failed(out))
        return error_set_memory(error);
    if (out->length > WIRE_TEXT_MAX)
        out->bytes[utf8_boundary(out->bytes, WIRE_TEXT_MAX)] = '\0';
    return 0;
}

int claim_init(struct client_claim *claim, const struct claim_facts *facts,
               struct berth_error *error)
{
    struct wire_message *question = &claim->question;
    int code;

    *claim = (struct client_claim){
        .question =
            {
                .type = WIRE_CLAIM,
                .request = facts->request,
                .hold = facts->hold,
                .about.inventory = facts->inventory,
                .pid = (int32_t)facts->pid,
                .started = facts->started,
                .present = facts->present,
            },
    };
    code = choose_token(question->token, error);
    if (code == 0)
        code = find_parent(&question->parent, error);
    if (code == 0 && facts->pid == 0)
        code = inherited_masks_collect(environ, &claim->masks, error);
    if (code == 0 && facts->argv != NULL)
        code = join_arguments(facts->argv, &claim->command, error);
    else if (code == 0 && facts->command != NULL)
        code =
            join_arguments((char *const[]){(char *)facts->command, NULL}, &claim->command, error);
    if (code < 0)
        return code;
    question->masks = claim->masks;
    question->command = claim->command.bytes;
    return 0;
}

int claim_init_test(struct client_claim *claim, const struct claim_facts *facts,
                    struct berth_error *error)
{
    int code = claim_init(claim, facts, error);

    claim->question = (struct wire_message){
        .type = WIRE_TEST,
        .request = claim->question.request,
        .parent = claim->question.parent,
        .masks = claim->question.masks,
        .about.inventory = claim->question.about.inventory,
    };
    return code;
}

void claim_finish(struct client_claim *claim)
{
    string_list_finish(&claim->masks);
    text_finish(&claim->command);
    if (claim->grant.type != 0)
        wire_message_finish(&claim->grant);
    *claim = (struct client_claim){0};
}

/* Drops a grant that may be incomplete. */
static void forget_grant(struct client_claim *claim)
{
    if (claim->grant.type != 0)
        wire_message_finish(&claim->grant);
    claim->grant = (struct wire_message){0};
    claim->granted = false;
}

static int send_claim(struct client_claim *claim, struct session *session,
                      struct berth_error *error)
{
    forget_grant(claim);
    claim->explain_number = 0;
    claim->explains = false;
    claim->question.number = session_next_number(session);
    return session_send(session, &claim->question, error);
}

int claim_resume(struct client_claim *claim, struct session *session, struct berth_error *error)
{
    claim->question.resume = true;
    claim->question.number = session_next_number(session);
    return session_send(session, &claim->question, error);
}

/* Moves the devices of the next part to the end of the grant. */
static int add_devices(struct wire_message *grant, struct wire_message *part)
{
    size_t count = grant->devices.count + part->devices.count;

    if (vector_reserve(&grant->devices, count) < 0)
        return BERTH_ERROR_MEMORY;
    memcpy(grant->devices.items + grant->devices.count, part->devices.items,
           part->devices.count * sizeof(*part->devices.items));
    grant->devices.count = count;
    part->devices.count = 0;
    return 0;
}

/* Adds one part of the grant; the claim owns its contents afterwards. */
static int add_grant_part(struct client_claim *claim, struct wire_message *part,
                          struct berth_error *error)
{
    struct wire_message *grant = &claim->grant;

    if (grant->type == 0) {
        *grant = *part;
        *part = (struct wire_message){0};
    } else if (part->devices.count > 0 && add_devices(grant, part) < 0) {
        return error_set_memory(error);
    } else {
        grant->more = part->more;
    }
    if (grant->more)
        return 0;
    if (grant->id == 0 || grant->devices.count == 0 || grant->replicas == 0 ||
        grant->devices.count % grant->replicas != 0)
        return error_set(
            error, BERTH_ERROR_SYNTAX,
            "grant: expected devices for each replica, got %zu devices for %u replicas",
            grant->devices.count, grant->replicas);
    claim->id = grant->id;
    claim->granted = true;
    return 0;
}

static int notify_listener(const struct wire_message *message,
                           const struct claim_listener *listener, struct berth_error *error)
{
    return listener->waiting == NULL ? 0 : listener->waiting(listener->context, message, error);
}

/* Handles a message from the daemon, if it is about this claim. */
static int handle_message(struct client_claim *claim, struct wire_message *message,
                          const struct claim_listener *listener, struct berth_error *error)
{
    bool answer = message->number == claim->question.number;

    if (message->number == claim->explain_number)
        claim->explains = false;
    if (message->type == WIRE_WAITING && answer)
        claim->id = message->id;
    if (message->type == WIRE_WAITING && (answer || message->number == claim->explain_number))
        return notify_listener(message, listener, error);
    if (message->type == WIRE_GRANTED && answer)
        return add_grant_part(claim, message, error);
    if (message->type == WIRE_REFUSED && answer)
        return session_refusal(message, error);
    return 0;
}

/* Requests the state of the claim. */
static int request_news(struct client_claim *claim, struct session *session,
                        struct berth_error *error)
{
    struct wire_message explain = {.type = WIRE_EXPLAIN, .id = claim->id};

    explain.number = claim->explain_number = session_next_number(session);
    claim->explains = true;
    return session_send(session, &explain, error);
}

/* Waits for the next message and handles it. */
static int wait_for_message(struct client_claim *claim, struct session *session,
                            const struct claim_listener *listener, struct berth_error *error)
{
    bool wants_news = claim->id != 0 && listener->pause > 0;
    int64_t pause = wants_news && !claim->explains ? listener->pause : -1;
    struct wire_message message;
    int code;

    /* The first WIRE_WAITING has no reason yet, so request one. */
    if (wants_news && claim->explain_number == 0)
        return request_news(claim, session, error);
    code = session_receive(session, pause, &message, error);
    if (code == SESSION_NOTHING && wants_news && !claim->explains)
        return request_news(claim, session, error);
    if (code != SESSION_MESSAGE)
        return code;
    code = handle_message(claim, &message, listener, error);
    wire_message_finish(&message);
    return code;
}

int claim_wait(struct client_claim *claim, struct session *session,
               const struct claim_listener *listener, struct berth_error *error)
{
    int code;

    claim->requested_at = clock_now();
    code = send_claim(claim, session, error);
    while (!claim->granted) {
        if (code == 0)
            code = wait_for_message(claim, session, listener, error);
        /* The daemon closed the connection without a message. */
        if (code == BERTH_ERROR_IO && session->socket < 0 && !session->closed) {
            code = session_reconnect(session, error);
            if (code < 0)
                return code;
            code = send_claim(claim, session, error);
        } else if (code < 0) {
            return code;
        }
    }
    session_end_limit(session);
    return 0;
}
