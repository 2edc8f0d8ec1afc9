/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages about existing claims and leases.
 */
#include <inttypes.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/permissions.h"
#include "daemon/handlers/handle.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/job.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/leases/lease_warnings.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/pool_news.h"

/* Answers DONE. A message without a number gets no answer. */
static void send_done(struct connection *connection, const struct wire_message *message)
{
    if (message->number == 0)
        return;
    connection_send(connection, &(struct wire_message){
                                    .type = WIRE_DONE,
                                    .number = message->number,
                                    .id = message->id,
                                });
}

/* Returns the requested action for an error message; the id follows. */
static const char *describe_action(enum wire_type type)
{
    switch (type) {
    case WIRE_CANCEL:
        return "cancel claim";
    case WIRE_EXTEND:
        return "extend lease";
    case WIRE_WATCH:
        return "wait for the end of";
    default:
        return "end lease";
    }
}

static void refuse_message(struct connection *connection, const struct wire_message *message,
                           int code, const char *text)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (message->number == 0)
        return;
    error_set(&error, code, "cannot %s %" PRIu64 ": %s", describe_action(message->type),
              message->id, text);
    connection_refuse(connection, message->number, &error);
}

/* Refuses the message, and names the right command. */
static void refuse_with_verb(struct connection *connection, const struct wire_message *message,
                             int code, const char *text, const char *verb)
{
    struct text whole = {0};

    text_append_format(&whole, "%s; use 'berth %s %" PRIu64 "'", text, verb, message->id);
    refuse_message(connection, message, code, text_failed(&whole) ? text : whole.bytes);
    text_finish(&whole);
}

/* Returns the message's job if the client may change it; refuses and returns NULL otherwise. */
static struct job *job_to_change(struct connection *connection, const struct wire_message *message)
{
    struct job *job = job_of_id(pool_of(connection), message->id);

    if (job == NULL) {
        refuse_message(connection, message, BERTH_ERROR_NOT_FOUND,
                       job_find_ended(pool_of(connection), message->id) != NULL
                           ? "it has already ended"
                           : "no claim or lease has this id");
        return NULL;
    }
    if (!permissions_may_decide(connection, job->holder->uid)) {
        refuse_message(connection, message, BERTH_ERROR_PERMISSION, "it belongs to another user");
        return NULL;
    }
    return job;
}

void handle_release(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    struct job *job = job_to_change(connection, message);

    if (job == NULL)
        return;
    if (job->connection != connection) {
        refuse_with_verb(connection, message, BERTH_ERROR_PERMISSION,
                         "only its holder can give it back", "release");
        return;
    }
    if (job->by_lease.id == 0) {
        refuse_with_verb(connection, message, BERTH_ERROR_INVALID, "it still waits", "cancel");
        return;
    }
    if (job_is_over(job)) {
        refuse_message(connection, message, BERTH_ERROR_NOT_FOUND, "it has already ended");
        return;
    }
    if (message->exit_code.known)
        job->exit_code = (int16_t)message->exit_code.value;
    if (job->end == 0)
        job->end = LEASE_END_RELEASED;
    lease_ending_asked(pool, job, connection->pid);
    lease_ending_holder_gone(pool, job);
    engine_events_settle(pool);
    job = job_of_id(pool, message->id);
    if (job != NULL && lease_ending_answer_later(pool, job, message->number))
        return;
    send_done(connection, message);
}

void handle_cancel(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    struct job *job = job_to_change(connection, message);

    if (job == NULL)
        return;
    if (job_is_preparing(job)) {
        job->end = LEASE_END_CANCELLED;
        lease_ending_done(pool, job);
        send_done(connection, message);
        return;
    }
    if (job->by_lease.id != 0) {
        refuse_with_verb(connection, message, BERTH_ERROR_INVALID, "it is already a lease",
                         "release");
        return;
    }
    engine_cancel(pool->engine, job->by_id.id, NULL);
    send_done(connection, message);
}

void handle_stop(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    struct job *job = job_to_change(connection, message);

    if (job == NULL)
        return;
    if (job->by_lease.id == 0) {
        refuse_with_verb(connection, message, BERTH_ERROR_INVALID, "it still waits", "cancel");
        return;
    }
    lease_ending_asked(pool, job, connection->pid);
    lease_ending_begin(pool, job, LEASE_END_STOPPED,
                       pool_clock_now(&pool->clock) + pool->rules.grace);
    send_done(connection, message);
}

/* Adds a duration to a time, at most up to TIME_NEVER - 1. */
static int64_t add_duration(int64_t time, uint64_t duration)
{
    return duration >= (uint64_t)(TIME_NEVER - time) ? TIME_NEVER - 1 : time + (int64_t)duration;
}

void handle_extend(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    struct job *job = job_to_change(connection, message);
    struct berth_error error = BERTH_ERROR_INIT;
    struct lease_view view;
    int64_t expires;
    int64_t longest;

    if (job == NULL)
        return;
    if (job->by_lease.id == 0 || !engine_get_lease(pool->engine, job->by_lease.id, &view)) {
        refuse_message(connection, message, BERTH_ERROR_INVALID,
                       "it still waits and has no time limit yet");
        return;
    }
    if (job->end != 0) {
        refuse_message(connection, message, BERTH_ERROR_INVALID, "it is already ending");
        return;
    }
    if (view.expires == TIME_NEVER) {
        refuse_message(connection, message, BERTH_ERROR_INVALID, "it has no time limit");
        return;
    }
    expires = add_duration(view.expires, message->duration);
    longest = permissions_max_time(connection);
    if (longest != 0 && expires - view.granted > longest && !permissions_is_admin(connection)) {
        error_set(&error, BERTH_ERROR_PERMISSION,
                  "cannot extend lease %" PRIu64 ": expected at most %s in total, got %s",
                  message->id, quantity_format_duration(longest).text,
                  quantity_format_duration(expires - view.granted).text);
        connection_refuse(connection, message->number, &error);
        return;
    }
    if (engine_extend(pool->engine, job->by_lease.id, expires, &error) < 0) {
        connection_refuse(connection, message->number, &error);
        return;
    }
    lease_warnings_limit(pool, job);
    pool_news_lease_changed(pool, job);
    connection_send(connection, &(struct wire_message){
                                    .type = WIRE_DONE,
                                    .number = message->number,
                                    .id = message->id,
                                    .expires = optional_number_of((uint64_t)expires),
                                });
}

void handle_watch(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    const struct ended_job *ended = job_find_ended(pool, message->id);
    struct berth_error error = BERTH_ERROR_INIT;
    struct watcher *watcher;

    if (ended != NULL) {
        connection_send(connection, &(struct wire_message){
                                        .type = WIRE_ENDED,
                                        .number = message->number,
                                        .id = ended->id,
                                        .end = ended->end,
                                        .exit_code = ended->exit_code,
                                    });
        return;
    }
    if (job_of_id(pool, message->id) == NULL) {
        refuse_message(connection, message, BERTH_ERROR_NOT_FOUND, "no claim or lease has this id");
        return;
    }
    watcher = watcher_new(connection, message->number, NULL, &error);
    if (watcher == NULL)
        connection_refuse(connection, message->number, &error);
    else
        watcher->id = message->id;
}
