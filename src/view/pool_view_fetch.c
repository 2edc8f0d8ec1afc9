/* SPDX-License-Identifier: Apache-2.0 */
#include "view/pool_view_fetch.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"

enum { ATTEMPTS = 5 };

/* A bound on several requests together; INT64_MAX: the session's patience only. */
struct fetch_limit {
    int64_t time;  /* nanoseconds, for the message */
    int64_t until; /* by clock_now() */
};

static const struct fetch_limit unlimited = {INT64_MAX, INT64_MAX};

/* Returns 1 for the answer to the question, 0 for a message with another number, or an error. */
static int check_answer(struct wire_message *message, uint64_t number, enum wire_type wanted,
                        struct berth_error *error)
{
    if (message->number != number)
        return 0;
    if (message->type == WIRE_REFUSED)
        return session_refusal(message, error);
    if (message->type != wanted)
        return error_set(error, BERTH_ERROR_SYNTAX, "expected the pool's answer '%s', got type %u",
                         wire_type_name(wanted), (unsigned)message->type);
    return 1;
}

/* Implements pool_view_fetch_answer with a time limit. */
static int request_within(struct session *session, struct wire_message *question,
                          enum wire_type wanted, struct fetch_limit limit,
                          struct wire_message *ret_answer, struct berth_error *error)
{
    int code;

    question->number = session_next_number(session);
    code = session_send(session, question, error);
    while (code == 0) {
        int64_t left = limit.until == INT64_MAX ? -1 : limit.until - clock_now();
        struct wire_message message;

        if (limit.until != INT64_MAX && left <= 0)
            return error_set(error, BERTH_ERROR_IO, "the daemon did not answer within %s",
                             quantity_format_duration(limit.time).text);
        code = session_receive(session, left, &message, error);
        if (code != SESSION_MESSAGE)
            continue;
        code = check_answer(&message, question->number, wanted, error);
        if (code == 1)
            *ret_answer = message;
        else
            wire_message_finish(&message);
    }
    return code < 0 ? code : 0;
}

int pool_view_fetch_answer(struct session *session, struct wire_message *question,
                           enum wire_type wanted, struct wire_message *ret_answer,
                           struct berth_error *error)
{
    return request_within(session, question, wanted, unlimited, ret_answer, error);
}

int pool_view_fetch_advance(const struct wire_message *page, struct pool_view_position *position,
                            struct berth_error *error)
{
    /* An unknown section ends the snapshot. */
    if (page->section == WIRE_SECTION_END || page->section > WIRE_SECTION_QUEUE)
        return false;
    if (page->section < position->section ||
        (page->section == position->section && page->after <= position->after))
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "cannot read the pool: its pages are out of order");
    if (++position->pages >= POOL_VIEW_PAGES_MAX)
        return error_set(error, BERTH_ERROR_LIMIT,
                         "cannot read the pool: it has more than %d pages", POOL_VIEW_PAGES_MAX);
    position->section = page->section;
    position->after = page->after;
    return true;
}

static int fetch_pages(struct session *session, struct fetch_limit limit, struct pool_view *view,
                       struct berth_error *error)
{
    struct pool_view_position position = {.section = WIRE_SECTION_DEVICES};
    int more = true;

    while (more > 0) {
        struct wire_message question = {
            .type = WIRE_LOOK, .section = position.section, .after = position.after};
        struct wire_message page;
        int code = request_within(session, &question, WIRE_PAGE, limit, &page, error);

        if (code < 0)
            return code;
        more = pool_view_add_page(view, &page.snapshot, error);
        if (more == 0)
            more = pool_view_fetch_advance(&page, &position, error);
        wire_message_finish(&page);
    }
    return more;
}

/* With both --inventory and BERTH_SOCKET, a pool with another inventory may answer. */
int pool_view_check_inventory(const char *wanted, const char *found, struct berth_error *error)
{
    if (wanted == NULL || (found != NULL && strcmp(wanted, found) == 0))
        return 0;
    if (found == NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected the pool of %s, got the pool of the hardware",
                         quote(wanted).text);
    return error_set(error, BERTH_ERROR_INVALID, "expected the pool of %s, got the pool of %s",
                     quote(wanted).text, quote(found).text);
}

static int fetch_view(struct session *session, struct fetch_limit limit, struct pool_view *ret_view,
                      struct berth_error *error)
{
    struct wire_message question = {.type = WIRE_HELLO};
    struct wire_message answer;
    struct pool_view view = {0};
    int code = request_within(session, &question, WIRE_POOL, limit, &answer, error);

    if (code < 0)
        return code;
    view.about = answer.about;
    answer.about = (struct pool_about){0};
    wire_message_finish(&answer);
    code = pool_view_check_inventory(session->address->inventory, view.about.inventory, error);
    if (code == 0)
        code = fetch_pages(session, limit, &view, error);
    if (code == 0)
        code = pool_view_index(&view, error);
    if (code < 0)
        pool_view_finish(&view);
    else
        *ret_view = view;
    return code;
}

int pool_view_fetch(struct session *session, struct pool_view *ret_view, struct berth_error *error)
{
    return fetch_view(session, unlimited, ret_view, error);
}

int pool_view_fetch_within(struct session *session, int64_t time, struct pool_view *ret_view,
                           struct berth_error *error)
{
    struct fetch_limit limit = {time, clock_after(clock_now(), time)};

    return fetch_view(session, limit, ret_view, error);
}

int pool_view_fetch_retrying(struct session *session, struct pool_view *ret_view,
                             struct berth_error *error)
{
    int code = pool_view_fetch(session, ret_view, error);

    for (int attempt = 1; code == BERTH_ERROR_IO && session->socket < 0 && attempt < ATTEMPTS;
         attempt++) {
        code = session_reconnect(session, error);
        if (code == 0)
            code = pool_view_fetch(session, ret_view, error);
    }
    return code;
}
