/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that ask for devices.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "daemon/adoption.h"
#include "daemon/asked.h"
#include "daemon/claims.h"
#include "daemon/connection.h"
#include "daemon/ending.h"
#include "daemon/hardware.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/messages.h"
#include "daemon/mps.h"
#include "daemon/news.h"
#include "daemon/notices.h"
#include "daemon/postponed.h"
#include "daemon/process.h"
#include "daemon/rights.h"
#include "daemon/rules.h"
#include "daemon/settle.h"
#include "daemon/users.h"
#include "engine/journal/journal.h"
#include "launch/masks/inherited_masks.h"

/* What a claim may bring into the journal, at most a few times its own size. */
enum { RECORDS_OF_CLAIM = 4096, REQUEST_MARGIN = 4 };

enum { KIB = 1024 };

static int check_inventory(const struct pool *pool, const char *wanted, struct berth_error *error)
{
    const char *here = pool->settings.inventory;

    if (wanted == NULL || (here != NULL && strcmp(here, wanted) == 0))
        return 0;
    return error_set(error, BERTH_ERROR_INVALID,
                     "--inventory: expected %s, which this pool uses, got %s",
                     here == NULL ? "none, but the hardware" : here, wanted);
}

/* The lease that the claim is made within: its holder must be of the same user. */
static int find_parent(const struct connection *connection, uint64_t id, uint64_t *ret_lease,
                       struct berth_error *error)
{
    const struct job *job = job_of_id(connection->pool, id);

    if (job == NULL || job->by_lease.id == 0 || job->state != JOB_HELD || job_is_preparing(job))
        return error_set(
            error, BERTH_ERROR_NOT_FOUND,
            "BERTH_LEASE: lease %" PRIu64
            " does not exist, or it ends or has ended; unset it with: unset BERTH_LEASE",
            id);
    if (job->holder->uid != connection->uid && connection->uid != 0)
        return error_set(error, BERTH_ERROR_PERMISSION,
                         "BERTH_LEASE: lease %" PRIu64 " belongs to another user", id);
    *ret_lease = job->by_lease.id;
    return 0;
}

static int check_rights(struct connection *connection, struct request *request,
                        struct berth_error *error)
{
    const struct configuration *rules = &connection->pool->rules;
    int64_t longest = rights_longest_time(connection);

    if (request->priority == PRIORITY_HIGH && !rights_may_use_high(connection))
        return error_set(error, BERTH_ERROR_PERMISSION,
                         "--priority high: the configuration does not allow this for you");
    if (!request->time.known && rules->default_time != 0)
        request->time = optional_number_of((uint64_t)rules->default_time);
    if (longest != 0 && (!request->time.known || request->time.value > (uint64_t)longest))
        return error_set(error, BERTH_ERROR_INVALID, "--time: expected at most %s, got %s",
                         quantity_format_duration(longest).text,
                         request->time.known
                             ? quantity_format_duration((int64_t)request->time.value).text
                             : "none");
    return request_validate(request, error);
}

/* The client itself. */
static struct claimant client_of(struct connection *connection)
{
    struct claimant claimant = {.uid = connection->uid, .pid = connection->pid};

    /* Where all are one user's, groups tell nobody apart. */
    if (!connection->pool->settings.own)
        claimant.groups = rights_groups(connection, &claimant.group_count);
    return claimant;
}

int claim_open(struct connection *connection, struct wire_message *message,
               const struct claimant *claimant, struct asked **ret_asked, struct berth_error *error)
{
    struct pool *pool = connection->pool;
    struct asker asker = {.uid = claimant->uid, .groups = claimant->groups};
    struct device_id_list mask = {0};
    bool has_mask = false;
    int code = 0;

    if (message->request == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "cannot claim: the message has no request");
    if (message->parent != 0)
        code = find_parent(connection, message->parent, &asker.parent, error);
    if (code == 0)
        code = check_inventory(pool, message->about.inventory, error);
    if (code == 0)
        code = check_rights(connection, message->request, error);
    if (code == 0 && !claimant->adopted)
        code = mps_check(pool, message->request, claimant->uid, error);
    if (code == 0 && message->masks.count > 0)
        code = inherited_masks_resolve(&message->masks, engine_machine(pool->engine), &mask,
                                       &has_mask, error);
    asker.mask = has_mask ? &mask : NULL;
    asker.group_count =
        claimant->group_count < JOURNAL_GROUPS_MAX ? claimant->group_count : JOURNAL_GROUPS_MAX;
    if (code == 0)
        code = rules_limit_user(pool, asker.uid, error);
    if (code == 0)
        code = asked_open(pool, message->request, &asker, ret_asked, error);
    vector_finish(&mask);
    return code;
}

/* ---- Claims ---- */

/* Whether the connection may go on with the job: it is of the same user, and where a process holds
 * it, of the same process, unless that was adopted. */
static bool is_its_client(struct connection *connection, const struct job *job)
{
    if (job->adopted)
        return rights_may_decide(connection, job->holder->uid);
    return job->holder->uid == connection->uid &&
           (job->hold != LEASE_HOLD_PROCESS || job->holder->pid == connection->pid);
}

/* The connection that waited so far, if it is still there, would wait for ever. */
static void tell_former(const struct job *job, const struct connection *connection)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (job->by_lease.id != 0 || job->connection == NULL || job->connection == connection)
        return;
    error_set(&error, BERTH_ERROR_CANCELLED, "another connection has taken over this claim");
    connection_refuse(job->connection, job->number, &error);
}

/* The claim was made before, and its client has come back. */
static void attach(struct connection *connection, struct wire_message *message, struct job *job)
{
    struct pool *pool = connection->pool;
    struct berth_error error = BERTH_ERROR_INIT;

    if (!is_its_client(connection, job)) {
        error_set(&error, BERTH_ERROR_INVALID, "cannot claim: another client uses this token");
        connection_refuse(connection, message->number, &error);
        return;
    }
    tell_former(job, connection);
    job_attach(job, connection, message->number);
    if (user_may_log(connection->user))
        log_line(&pool->log, pool_now(pool), "attached", "id=%" PRIu64 " pid=%d", job->by_id.id,
                 (int)connection->pid);
    if (job->by_lease.id != 0 && !job_is_preparing(job)) {
        settle_send_grant(pool, job);
        notice_limit(pool, job);
        if (job->end != 0 && job->guard != NULL)
            ending_send_notice(pool, job, job->end, job->guard->force_at);
        return;
    }
    settle_send_waiting(job);
}

/* How long the request waits at most. */
static int64_t wait_of(const struct request *request)
{
    if (request->nonblock)
        return 0;
    return request->wait.known && request->wait.value < TIME_NEVER ? (int64_t)request->wait.value
                                                                   : TIME_NEVER;
}

static struct holder *holder_of(struct connection *connection, const struct wire_message *message)
{
    struct job *last = list_is_empty(&connection->jobs)
                           ? NULL
                           : container_of(list_last(&connection->jobs), struct job, in_connection);
    const char *command = message->command;
    int64_t wait = wait_of(message->request);
    struct holder *holder;

    if (connection->started == 0)
        connection->started = process_stat_started(connection->pid);
    if (last != NULL && last->holder->pid == connection->pid &&
        last->holder->parent == message->parent && last->holder->wait == wait &&
        (command == NULL
             ? last->holder->command == NULL
             : last->holder->command != NULL && strcmp(command, last->holder->command) == 0)) {
        last->holder->users++;
        return last->holder;
    }
    holder =
        holder_new(connection->uid, connection->pid, connection->started, message->parent, command);
    if (holder != NULL)
        holder->wait = wait;
    return holder;
}

/* Whether something has to be done for its devices before its holder is told of them. */
static bool needs_preparing(const struct pool *pool, const struct wire_message *message,
                            const struct claimant *claimant)
{
    if (claimant->adopted)
        return false;
    return message->request->sharing == SHARING_MPS ||
           (message->parent == 0 && pool->rules.prolog.argv.count > 0);
}

struct job *claim_new_job(struct connection *connection, const struct wire_message *message,
                          const struct claimant *claimant)
{
    struct holder *holder = claimant->adopted
                                ? holder_new(claimant->uid, claimant->pid, claimant->started,
                                             message->parent, message->command)
                                : holder_of(connection, message);
    struct job *job = holder == NULL ? NULL : job_new(connection->pool, connection, holder);

    holder_release(holder);
    if (job == NULL)
        return NULL;
    job->number = message->number;
    job->by_token.id = message->token[0];
    job->token_low = message->token[1];
    job->hold = message->hold;
    job->adopted = claimant->adopted;
    job->unprepared = needs_preparing(connection->pool, message, claimant);
    job->since = pool_now(connection->pool);
    job->kib = (uint8_t)(connection->pool->packet_length / KIB);
    return job;
}

int64_t claim_deadline(const struct pool *pool, const struct request *request)
{
    int64_t now = pool_now(pool);

    return request->wait.known && request->wait.value < (uint64_t)(TIME_NEVER - now)
               ? now + (int64_t)request->wait.value
               : TIME_NEVER;
}

/* Whether the claim may wait. Fails with BERTH_ERROR_BUSY or, for a user who waits for too much
 * already, _LIMIT. */
static int check_wait(const struct connection *connection, const struct request *request,
                      struct berth_error *error)
{
    return request->nonblock
               ? error_set(error, BERTH_ERROR_BUSY, "no free device (--nonblock)")
               : user_check_waiting(connection->user, connection->pool->packet_length, error);
}

/* Asks the engine. Returns as engine_claim, or as check_wait rather than waiting. */
static int ask(const struct connection *connection, const struct wire_message *message,
               struct asked *asked, uint64_t *ret_id, struct berth_error *error)
{
    struct pool *pool = connection->pool;
    const struct request *request = message->request;
    struct berth_error why = BERTH_ERROR_INIT;

    if (check_wait(connection, request, &why) < 0) {
        int code = engine_would_grant(pool->engine, asked->request, error);

        if (code == CLAIM_WAITS)
            return error_set(error, why.code, "%s", why.message);
        if (code < 0)
            return code;
    }
    return engine_claim(pool->engine, asked->request, claim_deadline(pool, request), NULL, ret_id,
                        error);
}

int claim_make(struct connection *connection, const struct wire_message *message,
               const struct claimant *claimant, struct asked *asked, struct berth_error *error)
{
    struct pool *pool = connection->pool;
    struct job *job = claim_new_job(connection, message, claimant);
    uint64_t id = 0;
    int code;

    if (job == NULL)
        return error_set_memory(error);
    code = ask(connection, message, asked, &id, error);
    if (code < 0) {
        job_free(pool, job);
        return code;
    }
    job_add(pool, job, id, code == CLAIM_GRANTED ? id : 0);
    keep_job(pool, job);
    if (code == CLAIM_GRANTED) {
        settle_granted(pool, job);
        return 0;
    }
    if (user_may_log(connection->user))
        log_line(&pool->log, job->since, "queued", "id=%" PRIu64 " uid=%u pid=%d", id,
                 claimant->uid, (int)claimant->pid);
    connection_send(connection, &(struct wire_message){
                                    .type = WIRE_WAITING,
                                    .number = message->number,
                                    .id = id,
                                    .position = (uint32_t)engine_pending(pool->engine),
                                });
    return 0;
}

static int claim(struct connection *connection, struct wire_message *message,
                 struct berth_error *error)
{
    struct pool *pool = connection->pool;
    size_t room = RECORDS_OF_CLAIM + REQUEST_MARGIN * pool->packet_length;
    const struct claimant client = client_of(connection);
    struct asked *asked = NULL;
    int code;

    if (message->token[0] == 0 && message->token[1] == 0)
        return error_set(error, BERTH_ERROR_INVALID, "cannot claim: the message has no token");
    if (message->resume)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "cannot resume: no such lease in this pool");
    if (message->hold == LEASE_HOLD_NOTHING &&
        (message->request == NULL || !message->request->time.known))
        return error_set(error, BERTH_ERROR_INVALID,
                         "cannot claim: a lease without a holder needs a time limit");
    if (connection->job_count >= JOBS_MAX)
        return error_set(error, BERTH_ERROR_LIMIT,
                         "too many claims on one connection: the maximum is %d", JOBS_MAX);
    code = journal_file_reserve(&pool->journal, room, error);
    if (code == 0 && message->pid != 0)
        return adopt(connection, message, error);
    /* Leases within leases have no other bound. */
    if (code == 0 && message->parent != 0)
        code = user_check_waiting(connection->user, pool->packet_length, error);
    if (code == 0)
        code = claim_open(connection, message, &client, &asked, error);
    if (code < 0)
        return code;
    assert(asked != NULL);
    code = claim_make(connection, message, &client, asked, error);
    asked_release(pool, asked);
    return code;
}

void message_claim_now(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;
    struct job *job = job_of_token(pool, message->token);
    struct berth_error error = BERTH_ERROR_INIT;

    if (job != NULL) {
        attach(connection, message, job);
        return;
    }
    if (claim(connection, message, &error) < 0) {
        tally_refused(pool, error.code);
        hardware_explain(pool, &error);
        connection_refuse(connection, message->number, &error);
    }
}

void message_claim(struct connection *connection, struct wire_message *message)
{
    if (job_of_token(connection->pool, message->token) != NULL ||
        !postponed_take(connection, message))
        message_claim_now(connection, message);
}

/* ---- Tests ---- */

/* Waits until the request would be granted. */
static int wait_for_grant(struct connection *connection, const struct wire_message *message,
                          struct asked *asked, struct berth_error *error)
{
    struct pool *pool = connection->pool;
    const struct request *request = message->request;
    struct watcher *watcher;

    if (request->nonblock)
        return error_set(error, BERTH_ERROR_BUSY, "no free device (--nonblock)");
    watcher = watcher_new(connection, message->number, asked, error);
    if (watcher == NULL)
        return error == NULL ? BERTH_ERROR_LIMIT : error->code;
    watcher->deadline = claim_deadline(pool, request);
    watcher->wait = request->wait.known ? (int64_t)request->wait.value : 0;
    pool->changed = true;
    return 0;
}

void message_test_now(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    const struct claimant client = client_of(connection);
    struct asked *asked = NULL;
    int code = journal_file_reserve(
        &pool->journal, RECORDS_OF_CLAIM + REQUEST_MARGIN * pool->packet_length, &error);

    if (code == 0)
        code = claim_open(connection, message, &client, &asked, &error);
    if (code == 0 && asked != NULL)
        code = engine_would_grant(pool->engine, asked->request, &error);
    if (code == CLAIM_GRANTED)
        connection_send(connection,
                        &(struct wire_message){.type = WIRE_DONE, .number = message->number});
    else if (code == CLAIM_WAITS && asked != NULL)
        code = wait_for_grant(connection, message, asked, &error);
    if (code < 0)
        connection_refuse(connection, message->number, &error);
    asked_release(pool, asked);
}

void message_test(struct connection *connection, struct wire_message *message)
{
    if (!postponed_take(connection, message))
        message_test_now(connection, message);
}
