/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "base/system/backoff.h"
#include "base/system/clock.h"
#include "view/follower_internal.h"

/* After this time without a message, the follower sends WIRE_HELLO to check the connection. */
#define QUIET_TIMEOUT (3 * DURATION_SECOND)
/* Pauses between attempts to reconnect (base/system/backoff.h). */
#define RECONNECT_PAUSE_MIN (DURATION_SECOND / 10)
#define RECONNECT_PAUSE_MAX DURATION_SECOND
/* Snapshots may take 1/PACE_PARTS of the time, unless the pause would exceed PACE_MAX. */
#define PACE_PARTS 10
#define PACE_MAX   (2 * DURATION_SECOND)

/* ---- The connection ---- */

uint32_t follower_wanted_sections(const struct follower *follower)
{
    uint32_t sections = follower->settings.sections;

    return sections == 0 ? ALL_SECTIONS : sections;
}

/* Forgets the open requests, which must be sent again, and keeps the view. */
static void forget_questions(struct follower *follower)
{
    follower->hello_number = follower->subscribe_number = follower->snapshot_number = 0;
    follower->due_sections = follower->snapshot_sections = 0;
    follower->pending_kinds |= follower->snapshot_kinds;
    follower->snapshot_kinds = 0;
    follower->due_whole_queue = false;
    follower->requested_at = 0;
    /* Otherwise the daemon would not repeat news whose snapshot is incomplete. */
    follower->mark = 0;
    pool_view_finish(&follower->partial);
}

static void mark_gone(struct follower *follower, const struct berth_error *reason)
{
    forget_questions(follower);
    follower->reason = *reason;
    follower->pause = backoff_next(follower->pause, RECONNECT_PAUSE_MIN, RECONNECT_PAUSE_MAX);
    follower->dial_at = clock_now() + follower->pause;
}

static bool is_connected(const struct follower *follower)
{
    return follower->session.socket >= 0;
}

/* Sends a request with a new number. `at_once`: the daemon must answer it without delay. */
static int send_question(struct follower *follower, struct wire_message *question, bool at_once,
                         uint64_t *ret_number, struct berth_error *error)
{
    int code;

    question->number = session_next_number(&follower->session);
    code = session_send(&follower->session, question, error);
    if (code < 0)
        return code;
    *ret_number = question->number;
    if (at_once && follower->requested_at == 0)
        follower->requested_at = clock_now();
    return 0;
}

static int send_hello(struct follower *follower, struct berth_error *error)
{
    return send_question(follower, &(struct wire_message){.type = WIRE_HELLO}, true,
                         &follower->hello_number, error);
}

int64_t follower_effective_interval(const struct follower *follower)
{
    int64_t interval = follower->settings.interval;
    int64_t min = follower->snapshot_duration < PACE_MAX / PACE_PARTS
                      ? PACE_PARTS * follower->snapshot_duration
                      : PACE_MAX;

    /* Do not delay ended leases: the daemon forgets them when it exits. */
    return follower->settings.keeps_ended || interval > min ? interval : min;
}

int follower_subscribe(struct follower *follower, struct berth_error *error)
{
    struct wire_message question = {
        .type = WIRE_FOLLOW,
        .epoch = follower->epoch,
        .after = follower->mark,
        .id = follower->ended_count,
        .kinds = follower->settings.kinds,
        .duration = (uint64_t)follower_effective_interval(follower),
    };

    return send_question(follower, &question, false, &follower->subscribe_number, error);
}

int follower_request_page(struct follower *follower, uint32_t section, uint64_t after,
                          struct berth_error *error)
{
    struct wire_message question = {
        .type = WIRE_LOOK,
        .section = section,
        .after = after,
        .sections = follower->snapshot_sections,
    };

    return send_question(follower, &question, true, &follower->snapshot_number, error);
}

int follower_start_snapshot(struct follower *follower, struct berth_error *error)
{
    if (follower->snapshot_number != 0 || follower->due_sections == 0)
        return 0;
    follower->snapshot_sections = follower->due_sections;
    follower->whole = follower->due_whole_queue;
    follower->snapshot_kinds = follower->pending_kinds;
    follower->due_sections = follower->pending_kinds = 0;
    follower->due_whole_queue = false;
    follower->snapshots_started++;
    follower->position = (struct pool_view_position){.section = WIRE_SECTION_DEVICES};
    follower->snapshot_started_at = clock_now();
    return follower_request_page(follower, WIRE_SECTION_DEVICES, 0, error);
}

/* Sends the first requests of a new connection. */
static int send_first_questions(struct follower *follower, struct berth_error *error)
{
    int code = send_hello(follower, error);

    follower->last_heard_at = clock_now();
    return code < 0 ? code : follower_subscribe(follower, error);
}

static void init_follower(struct follower *follower, const struct follower_settings *settings)
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

int follower_open(struct follower *follower, const struct follower_settings *settings,
                  struct berth_error *error)
{
    int code;

    init_follower(follower, settings);
    code = pool_address_find(settings->inventory, &follower->address, error);
    /* A missing inventory is invalid input; a missing daemon, which has the same code, is not. */
    if (code == BERTH_ERROR_NOT_FOUND)
        return error_wrap(error, BERTH_ERROR_INVALID, "--inventory");
    if (code < 0)
        return code;
    code = session_open(&follower->session, &follower->address, DIAL_START, error);
    if (code == 0) {
        code = send_first_questions(follower, error);
        /* The daemon is gone already, and may come back. */
        if (code == BERTH_ERROR_IO && !follower->session.closed) {
            mark_gone(follower, error);
            return 0;
        }
    }
    if (code < 0)
        follower_close(follower);
    return code;
}

int follower_open_connected(struct follower *follower, int descriptor,
                            const struct follower_settings *settings, struct berth_error *error)
{
    int code;

    init_follower(follower, settings);
    follower->never_reconnects = true;
    follower->address.socket = strdup("berthd");
    code = session_open_connected(&follower->session, &follower->address, descriptor, error);
    if (code == 0 && follower->address.socket == NULL)
        code = error_set_memory(error);
    if (code == 0)
        code = send_first_questions(follower, error);
    if (code < 0)
        follower_close(follower);
    return code;
}

void follower_forget_ended(struct follower *follower)
{
    struct ended_lease *ended;

    vector_for_each (ended, &follower->ended)
        pool_info_finish_ended(ended);
    vector_finish(&follower->ended);
    follower->lost = 0;
}

void follower_close(struct follower *follower)
{
    session_close(&follower->session);
    pool_address_finish(&follower->address);
    follower_forget_ended(follower);
    pool_view_finish(&follower->partial);
    pool_view_finish(&follower->view);
}

/* ---- Steps ---- */

/* Returns how long the daemon may be quiet before the follower checks the connection. A daemon that
 * started this process must not be woken needlessly. */
static int64_t quiet_timeout(const struct follower *follower)
{
    return follower->never_reconnects ? DURATION_HOUR : QUIET_TIMEOUT;
}

/* Handles all received messages. Returns the kinds of news, or an error. */
static int receive_messages(struct follower *follower, struct berth_error *error)
{
    int news = 0;

    for (;;) {
        struct wire_message message;
        int code = session_receive(&follower->session, 0, &message, error);

        if (code == SESSION_NOTHING)
            return news;
        if (code < 0)
            return code;
        follower->last_heard_at = clock_now();
        follower->pause = 0;
        code = follower_handle_message(follower, &message, error);
        wire_message_finish(&message);
        if (code < 0)
            return code;
        news |= code;
        if (follower->hello_number == 0 && follower->snapshot_number == 0)
            follower->requested_at = 0;
        else if (follower->requested_at != 0)
            follower->requested_at = follower->last_heard_at;
    }
}

static int reconnect_if_due(struct follower *follower, struct berth_error *error)
{
    enum dial_mode how = follower->address.own ? DIAL_START : follower->session.how;
    int code;

    if (clock_now() < follower->dial_at)
        return 0;
    code = session_try_reconnect(&follower->session, how, error);
    return code < 0 ? code : send_first_questions(follower, error);
}

static int receive_or_reconnect(struct follower *follower, struct berth_error *error)
{
    int news;
    int code;

    if (!is_connected(follower) && follower->dial_at != 0) {
        code = reconnect_if_due(follower, error);
        if (code < 0 || !is_connected(follower))
            return code;
    }
    news = receive_messages(follower, error);
    if (news < 0)
        return news;
    code = 0;
    if (!follower->never_reconnects && follower->hello_number == 0 &&
        clock_now() - follower->last_heard_at >= quiet_timeout(follower))
        code = send_hello(follower, error);
    return code < 0 ? code : news;
}

int follower_step(struct follower *follower, struct berth_error *error)
{
    struct berth_error found = BERTH_ERROR_INIT;
    int news = receive_or_reconnect(follower, &found);

    if (news >= 0 && follower_get_state(follower) == FOLLOWER_SILENT)
        session_explain_silence(&follower->session, &follower->reason);
    if (news >= 0)
        return news;
    /* A daemon that is gone may come back. A refusal is final. */
    if ((found.code == BERTH_ERROR_IO || found.code == BERTH_ERROR_NOT_FOUND) &&
        !follower->session.closed && !follower->never_reconnects && !is_connected(follower)) {
        mark_gone(follower, &found);
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

int64_t follower_next_timeout(const struct follower *follower)
{
    int64_t now = clock_now();
    /* Without reconnecting there is no need to check whether the daemon still answers. */
    int64_t next =
        follower->never_reconnects ? INT64_MAX : follower->last_heard_at + quiet_timeout(follower);

    if (!is_connected(follower))
        next = follower->dial_at;
    else if (follower->requested_at != 0)
        next = follower->requested_at + FOLLOWER_TIMEOUT > now
                   ? follower->requested_at + FOLLOWER_TIMEOUT
                   : now + DURATION_SECOND;
    return next > now ? next - now : 0;
}

enum follower_state follower_get_state(const struct follower *follower)
{
    if (!is_connected(follower))
        return FOLLOWER_GONE;
    return follower->requested_at != 0 && clock_now() - follower->requested_at >= FOLLOWER_TIMEOUT
               ? FOLLOWER_SILENT
               : FOLLOWER_LIVE;
}

int64_t follower_time(const struct follower *follower)
{
    int64_t until =
        follower_get_state(follower) == FOLLOWER_LIVE ? clock_now() : follower->last_heard_at;

    return follower->view.snapshot.time +
           (until > follower->seen_at ? until - follower->seen_at : 0);
}

void follower_set_interests(struct follower *follower, uint32_t kinds, int64_t interval)
{
    struct berth_error ignored = BERTH_ERROR_INIT;

    if (kinds == follower->settings.kinds && interval == follower->settings.interval)
        return;
    /* Kinds that were not subscribed to may have changed since the last snapshot. */
    follower->pending_kinds |= kinds & ~follower->settings.kinds;
    follower->due_sections |= follower_sections_of_kinds(kinds & ~follower->settings.kinds) &
                              follower_wanted_sections(follower);
    follower->settings.kinds = kinds;
    follower->settings.interval = interval;
    /* The new subscription replaces the current one. The next step notices when the daemon is
     * gone. */
    if (is_connected(follower) && follower_start_snapshot(follower, &ignored) == 0)
        follower_subscribe(follower, &ignored);
}

uint64_t follower_refresh(struct follower *follower, bool whole)
{
    struct berth_error ignored = BERTH_ERROR_INIT;
    uint64_t next = follower->snapshots_started + 1;

    follower->due_sections |= follower_wanted_sections(follower);
    follower->due_whole_queue |= whole;
    follower->pending_kinds |= follower->settings.kinds & (WIRE_NEWS_LEASE | WIRE_NEWS_QUEUE);
    /* When a snapshot is in progress, this one starts after it. */
    if (is_connected(follower))
        follower_start_snapshot(follower, &ignored);
    return next;
}
