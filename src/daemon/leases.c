/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages about claims and leases that are there.
 */
#include <inttypes.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "daemon/connection.h"
#include "daemon/ending.h"
#include "daemon/jobs.h"
#include "daemon/messages.h"
#include "daemon/notices.h"
#include "daemon/past.h"
#include "daemon/rights.h"
#include "daemon/settle.h"

/* Nobody waits for what has no number. */
static void done(struct connection *connection, const struct wire_message *message)
{
    if (message->number == 0)
        return;
    connection_send(connection, &(struct wire_message){
                                    .type = WIRE_DONE,
                                    .number = message->number,
                                    .id = message->id,
                                });
}

/* Returns the action that the message requests, as the start of an error text; the id follows. */
static const char *describe_act(enum wire_type type)
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

static void fail(struct connection *connection, const struct wire_message *message, int code,
                 const char *text)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (message->number == 0)
        return;
    error_set(&error, code, "cannot %s %" PRIu64 ": %s", describe_act(message->type), message->id,
              text);
    connection_refuse(connection, message->number, &error);
}

/* Refuses what another verb can do, and says which. */
static void fail_with_verb(struct connection *connection, const struct wire_message *message,
                           int code, const char *text, const char *verb)
{
    struct text whole = {0};

    text_append_format(&whole, "%s; use 'berth %s %" PRIu64 "'", text, verb, message->id);
    fail(connection, message, code, text_failed(&whole) ? text : whole.bytes);
    text_finish(&whole);
}

/* The job that the message is about, if the client may decide about it; NULL after refusing. */
static struct job *job_to_change(struct connection *connection, const struct wire_message *message)
{
    struct job *job = job_of_id(connection->pool, message->id);

    if (job == NULL) {
        fail(connection, message, BERTH_ERROR_NOT_FOUND,
             ended_find(connection->pool, message->id) != NULL ? "it has already ended"
                                                               : "no claim or lease has this id");
        return NULL;
    }
    if (!rights_may_decide(connection, job->holder->uid)) {
        fail(connection, message, BERTH_ERROR_PERMISSION, "it belongs to another user");
        return NULL;
    }
    return job;
}

void message_release(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;
    struct job *job = job_to_change(connection, message);

    if (job == NULL)
        return;
    if (job->connection != connection) {
        fail_with_verb(connection, message, BERTH_ERROR_PERMISSION,
                       "only its holder can give it back", "release");
        return;
    }
    if (job->by_lease.id == 0) {
        fail_with_verb(connection, message, BERTH_ERROR_INVALID, "it still waits", "cancel");
        return;
    }
    if (job->state == JOB_DRAINING) {
        fail(connection, message, BERTH_ERROR_NOT_FOUND, "it has already ended");
        return;
    }
    if (message->exit_code.known)
        job->exit_code = (int16_t)message->exit_code.value;
    if (job->end == 0)
        job->end = LEASE_END_RELEASED;
    /* What it ran has ended with it, but for what was never below it: containers. */
    ending_holder_gone(pool, job);
    pool_settle(pool);
    done(connection, message);
}

void message_cancel(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;
    struct job *job = job_to_change(connection, message);

    if (job == NULL)
        return;
    if (job_is_preparing(job)) {
        job->end = LEASE_END_CANCELLED;
        ending_done(pool, job);
        done(connection, message);
        return;
    }
    if (job->by_lease.id != 0) {
        fail_with_verb(connection, message, BERTH_ERROR_INVALID, "it is already a lease",
                       "release");
        return;
    }
    engine_cancel(pool->engine, job->by_id.id, NULL);
    done(connection, message);
}

void message_stop(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;
    struct job *job = job_to_change(connection, message);

    if (job == NULL)
        return;
    if (job->by_lease.id == 0) {
        fail_with_verb(connection, message, BERTH_ERROR_INVALID, "it still waits", "cancel");
        return;
    }
    ending_begin(pool, job, LEASE_END_STOPPED, pool_now(pool) + pool->rules.grace);
    done(connection, message);
}

/* A time moved by so much. */
static int64_t later(int64_t time, uint64_t duration)
{
    return duration >= (uint64_t)(TIME_NEVER - time) ? TIME_NEVER - 1 : time + (int64_t)duration;
}

void message_extend(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;
    struct job *job = job_to_change(connection, message);
    struct berth_error error = BERTH_ERROR_INIT;
    struct lease_view view;
    int64_t expires;
    int64_t longest;

    if (job == NULL)
        return;
    if (job->by_lease.id == 0 || !engine_get_lease(pool->engine, job->by_lease.id, &view)) {
        fail(connection, message, BERTH_ERROR_INVALID, "it still waits and has no time limit yet");
        return;
    }
    if (job->end != 0) {
        fail(connection, message, BERTH_ERROR_INVALID, "it is already ending");
        return;
    }
    if (view.expires == TIME_NEVER) {
        fail(connection, message, BERTH_ERROR_INVALID, "it has no time limit");
        return;
    }
    expires = later(view.expires, message->duration);
    longest = rights_longest_time(connection);
    if (longest != 0 && expires - view.granted > longest && !rights_is_admin(connection)) {
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
    notice_limit(pool, job);
    past_lease(pool, job);
    connection_send(connection, &(struct wire_message){
                                    .type = WIRE_DONE,
                                    .number = message->number,
                                    .id = message->id,
                                    .expires = optional_number_of((uint64_t)expires),
                                });
}

void message_watch(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;
    const struct ended *ended = ended_find(pool, message->id);
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
        fail(connection, message, BERTH_ERROR_NOT_FOUND, "no claim or lease has this id");
        return;
    }
    watcher = watcher_new(connection, message->number, NULL, &error);
    if (watcher == NULL)
        connection_refuse(connection, message->number, &error);
    else
        watcher->id = message->id;
}
