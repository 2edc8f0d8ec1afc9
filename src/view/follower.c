/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "view/follower_internal.h"

/* A daemon that says nothing is asked whether it is there. */
#define QUIET (3 * DURATION_SECOND)
/* One that is gone is dialled after the first of these, then after twice as long each time. */
#define PAUSE_FIRST (DURATION_SECOND / 10)
#define PAUSE_LAST  DURATION_SECOND
/* Looking is at most this part of the time, unless it takes very long. */
#define PACE_PARTS 10
#define PACE_MAX   (2 * DURATION_SECOND)

/* ---- The connection ---- */

uint32_t follow_sections_wanted(const struct follower *follower)
{
    uint32_t sections = follower->settings.sections;

    return sections == 0 ? ALL_SECTIONS : sections;
}

/* What there was to be asked is to be asked again; what is known is kept. */
static void forget_questions(struct follower *follower)
{
    follower->hello_number = follower->follow_number = follower->look_number = 0;
    follower->due = follower->looking = 0;
    follower->coming |= follower->telling;
    follower->telling = 0;
    follower->due_whole = false;
    follower->asked_at = 0;
    /* What was told and not looked at yet would not be told again. */
    follower->mark = 0;
    pool_view_finish(&follower->taken);
}

static void lose(struct follower *follower, const struct berth_error *reason)
{
    forget_questions(follower);
    follower->reason = *reason;
    follower->pause = follower->pause == 0           ? PAUSE_FIRST
                      : follower->pause < PAUSE_LAST ? 2 * follower->pause
                                                     : PAUSE_LAST;
    follower->dial_at = clock_now() + follower->pause;
}

static bool is_connected(const struct follower *follower)
{
    return follower->session.socket >= 0;
}

/* Sends a question, which gets a number. What is to be answered at once is waited for. */
static int ask(struct follower *follower, struct wire_message *question, bool at_once,
               uint64_t *ret_number, struct berth_error *error)
{
    int code;

    question->number = session_number(&follower->session);
    code = session_send(&follower->session, question, error);
    if (code < 0)
        return code;
    *ret_number = question->number;
    if (at_once && follower->asked_at == 0)
        follower->asked_at = clock_now();
    return 0;
}

static int ask_hello(struct follower *follower, struct berth_error *error)
{
    return ask(follower, &(struct wire_message){.type = WIRE_HELLO}, true, &follower->hello_number,
               error);
}

int64_t follow_pace(const struct follower *follower)
{
    int64_t interval = follower->settings.interval;
    int64_t min =
        follower->look_time < PACE_MAX / PACE_PARTS ? PACE_PARTS * follower->look_time : PACE_MAX;

    /* What has ended is told of only as long as the daemon lives. */
    return follower->settings.keeps_ended || interval > min ? interval : min;
}

int follow_ask(struct follower *follower, struct berth_error *error)
{
    struct wire_message question = {
        .type = WIRE_FOLLOW,
        .epoch = follower->epoch,
        .after = follower->mark,
        .id = follower->ended_count,
        .kinds = follower->settings.kinds,
        .duration = (uint64_t)follow_pace(follower),
    };

    return ask(follower, &question, false, &follower->follow_number, error);
}

int follow_ask_look(struct follower *follower, uint32_t section, uint64_t after,
                    struct berth_error *error)
{
    struct wire_message question = {
        .type = WIRE_LOOK,
        .section = section,
        .after = after,
        .sections = follower->looking,
    };

    return ask(follower, &question, true, &follower->look_number, error);
}

int follow_look_at_due(struct follower *follower, struct berth_error *error)
{
    if (follower->look_number != 0 || follower->due == 0)
        return 0;
    follower->looking = follower->due;
    follower->whole = follower->due_whole;
    follower->telling = follower->coming;
    follower->due = follower->coming = 0;
    follower->due_whole = false;
    follower->begun++;
    follower->place = (struct pool_view_place){.section = WIRE_SECTION_DEVICES};
    follower->look_began = clock_now();
    return follow_ask_look(follower, WIRE_SECTION_DEVICES, 0, error);
}

/* The connection is new: says what is known already. */
static int begin(struct follower *follower, struct berth_error *error)
{
    int code = ask_hello(follower, error);

    follower->heard_at = clock_now();
    return code < 0 ? code : follow_ask(follower, error);
}

static void prepare(struct follower *follower, const struct follow_settings *settings)
{
    *follower = (struct follower){
        .settings = *settings,
        .epoch = settings->epoch,
        .ended_count = settings->ended_known,
        .tally.waited = &follower->waited,
        .tally.held = &follower->held,
        .reason = BERTH_ERROR_INIT,
    };
    follower->session.socket = -1;
}

int follower_open(struct follower *follower, const struct follow_settings *settings,
                  struct berth_error *error)
{
    int code;

    prepare(follower, settings);
    code = pool_address_find(settings->inventory, &follower->address, error);
    /* The file is the user's words; that nobody listens, which has the same code, is not. */
    if (code == BERTH_ERROR_NOT_FOUND)
        return error_wrap(error, BERTH_ERROR_INVALID, "inventory");
    if (code < 0)
        return code;
    code = session_open(&follower->session, &follower->address, DIAL_START, error);
    if (code == 0) {
        code = begin(follower, error);
        /* It has gone already, and may come back. */
        if (code == BERTH_ERROR_IO && !follower->session.closed) {
            lose(follower, error);
            return 0;
        }
    }
    if (code < 0)
        follower_close(follower);
    return code;
}

int follower_open_on(struct follower *follower, int descriptor,
                     const struct follow_settings *settings, struct berth_error *error)
{
    int code;

    prepare(follower, settings);
    follower->is_fixed = true;
    follower->address.socket = strdup("berthd");
    code = session_open_on(&follower->session, &follower->address, descriptor, error);
    if (code == 0 && follower->address.socket == NULL)
        code = error_set_memory(error);
    if (code == 0)
        code = begin(follower, error);
    if (code < 0)
        follower_close(follower);
    return code;
}

static void finish_ended(struct ended_lease *ended)
{
    free(ended->lease->name);
    free(ended->lease->command);
    vector_finish(&ended->lease->devices);
    free(ended->lease);
}

void follower_forget_ended(struct follower *follower)
{
    struct ended_lease *ended;

    vector_for_each (ended, &follower->ended)
        finish_ended(ended);
    vector_finish(&follower->ended);
    follower->lost = 0;
}

void follower_close(struct follower *follower)
{
    session_close(&follower->session);
    pool_address_finish(&follower->address);
    follower_forget_ended(follower);
    pool_view_finish(&follower->taken);
    pool_view_finish(&follower->view);
}

/* ---- Step by step ---- */

/* For how long it may say nothing. One that started us wakes up for nothing rather not. */
static int64_t quiet(const struct follower *follower)
{
    return follower->is_fixed ? DURATION_HOUR : QUIET;
}

/* Takes in all that has come. Returns the news, or an error. */
static int receive(struct follower *follower, struct berth_error *error)
{
    int news = 0;

    for (;;) {
        struct wire_message message;
        int code = session_receive(&follower->session, 0, &message, error);

        if (code == SESSION_NOTHING)
            return news;
        if (code < 0)
            return code;
        follower->heard_at = clock_now();
        follower->pause = 0;
        code = follow_take(follower, &message, error);
        wire_message_finish(&message);
        if (code < 0)
            return code;
        news |= code;
        if (follower->hello_number == 0 && follower->look_number == 0)
            follower->asked_at = 0;
        else if (follower->asked_at != 0)
            follower->asked_at = follower->heard_at;
    }
}

static int dial_again(struct follower *follower, struct berth_error *error)
{
    enum dial_how how = follower->address.own ? DIAL_START : follower->session.how;
    int code;

    if (clock_now() < follower->dial_at)
        return 0;
    code = session_try_again(&follower->session, how, error);
    return code < 0 ? code : begin(follower, error);
}

static int step(struct follower *follower, struct berth_error *error)
{
    int news;
    int code;

    if (!is_connected(follower) && follower->dial_at != 0) {
        code = dial_again(follower, error);
        if (code < 0 || !is_connected(follower))
            return code;
    }
    news = receive(follower, error);
    if (news < 0)
        return news;
    code = 0;
    if (!follower->is_fixed && follower->hello_number == 0 &&
        clock_now() - follower->heard_at >= quiet(follower))
        code = ask_hello(follower, error);
    return code < 0 ? code : news;
}

int follower_step(struct follower *follower, struct berth_error *error)
{
    struct berth_error found = BERTH_ERROR_INIT;
    int news = step(follower, &found);

    if (news >= 0)
        return news;
    /* Whoever is not there may come back; whoever says no will say it again. */
    if ((found.code == BERTH_ERROR_IO || found.code == BERTH_ERROR_NOT_FOUND) &&
        !follower->session.closed && !follower->is_fixed && !is_connected(follower)) {
        lose(follower, &found);
        return 0;
    }
    if (error != NULL)
        *error = found;
    return news;
}

int follower_descriptor(const struct follower *follower)
{
    return follower->session.socket;
}

int64_t follower_wait(const struct follower *follower)
{
    int64_t now = clock_now();
    /* Whoever has nobody else to dial need not find out whether this one still answers. */
    int64_t next = follower->is_fixed ? INT64_MAX : follower->heard_at + quiet(follower);

    if (!is_connected(follower))
        next = follower->dial_at;
    else if (follower->asked_at != 0)
        next = follower->asked_at + FOLLOW_TIMEOUT > now ? follower->asked_at + FOLLOW_TIMEOUT
                                                         : now + DURATION_SECOND;
    return next > now ? next - now : 0;
}

enum follow_state follower_state(const struct follower *follower)
{
    if (!is_connected(follower))
        return FOLLOW_GONE;
    return follower->asked_at != 0 && clock_now() - follower->asked_at >= FOLLOW_TIMEOUT
               ? FOLLOW_SILENT
               : FOLLOW_LIVE;
}

int64_t follower_time(const struct follower *follower)
{
    int64_t until = follower_state(follower) == FOLLOW_LIVE ? clock_now() : follower->heard_at;

    return follower->view.look.time + (until > follower->seen_at ? until - follower->seen_at : 0);
}

void follower_want(struct follower *follower, uint32_t kinds, int64_t interval)
{
    struct berth_error ignored = BERTH_ERROR_INIT;

    if (kinds == follower->settings.kinds && interval == follower->settings.interval)
        return;
    /* What is wanted anew may have changed since it was last looked at. */
    follower->coming |= kinds & ~follower->settings.kinds;
    follower->due |=
        follow_sections_of(kinds & ~follower->settings.kinds) & follow_sections_wanted(follower);
    follower->settings.kinds = kinds;
    follower->settings.interval = interval;
    /* It takes the place of what was asked; a daemon that is gone is noticed by the next step. */
    if (is_connected(follower) && follow_look_at_due(follower, &ignored) == 0)
        follow_ask(follower, &ignored);
}

uint64_t follower_refresh(struct follower *follower, bool whole)
{
    struct berth_error ignored = BERTH_ERROR_INIT;
    uint64_t next = follower->begun + 1;

    follower->due |= follow_sections_wanted(follower);
    follower->due_whole |= whole;
    follower->coming |= follower->settings.kinds & (WIRE_NEWS_LEASE | WIRE_NEWS_QUEUE);
    /* A look that is under way comes to its end first; this one begins then. */
    if (is_connected(follower))
        follow_look_at_due(follower, &ignored);
    return next;
}
