/* SPDX-License-Identifier: Apache-2.0
 *
 * CLAIM and TEST.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/permissions.h"
#include "daemon/clients/quota.h"
#include "daemon/core/pidfd.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/handlers/deferred_claims.h"
#include "daemon/handlers/handle.h"
#include "daemon/handlers/handle_adopt.h"
#include "daemon/handlers/handle_claim.h"
#include "daemon/leases/configure_engine.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/job.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/leases/lease_warnings.h"
#include "daemon/leases/mps_tenants.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/request_cache.h"
#include "daemon/stream/followers.h"
#include "engine/journal/journal.h"
#include "launch/masks/inherited_masks.h"

/* The maximum size of a claim's journal records: a constant and a multiple of its packet. */
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

/* Finds the lease around the claim, which must belong to the same user. */
static int find_parent(const struct connection *connection, uint64_t id, uint64_t *ret_lease,
                       struct berth_error *error)
{
    const struct job *job = job_of_id(pool_of(connection), id);

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
    const struct configuration *rules = &pool_of(connection)->rules;
    int64_t longest = permissions_max_time(connection);

    if (request->priority == PRIORITY_HIGH && !permissions_may_use_high(connection))
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

/* Returns the client itself as the claimant. */
static struct claimant client_of(struct connection *connection)
{
    struct claimant claimant = {.uid = connection->uid, .pid = connection->pid};

    /* A user's own pool has one user, so groups do not matter. */
    if (!pool_of(connection)->settings.own)
        claimant.groups = permissions_groups(connection, &claimant.group_count);
    return claimant;
}

int handle_claim_open_request(struct connection *connection, struct wire_message *message,
                              const struct claimant *claimant, struct cached_request **ret_cached,
                              struct berth_error *error)
{
    struct pool *pool = pool_of(connection);
    struct requester requester = {.uid = accounts_find(&pool->accounts, claimant->uid),
                                  .groups = claimant->groups};
    struct device_id_list mask = {0};
    bool has_mask = false;
    int code = 0;

    if (message->request == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "cannot claim: the message has no request");
    if (message->parent != 0)
        code = find_parent(connection, message->parent, &requester.parent, error);
    if (code == 0)
        code = check_inventory(pool, message->about.inventory, error);
    if (code == 0)
        code = check_rights(connection, message->request, error);
    if (code == 0 && !claimant->adopted)
        code = mps_tenants_check(pool, message->request, claimant->uid, error);
    if (code == 0 && message->masks.count > 0)
        code = inherited_masks_resolve(&message->masks, engine_machine(pool->engine), &mask,
                                       &has_mask, error);
    requester.mask = has_mask ? &mask : NULL;
    requester.group_count =
        claimant->group_count < JOURNAL_GROUPS_MAX ? claimant->group_count : JOURNAL_GROUPS_MAX;
    if (code == 0)
        code = configure_engine_limit_user(pool, requester.uid, error);
    if (code == 0)
        code = request_cache_open(pool, message->request, &requester, ret_cached, error);
    vector_finish(&mask);
    return code;
}

/* ---- Claims ---- */

/* Returns whether the connection may continue the job: it has the same user and, if a process holds
 * the job, the same process. An adopted job needs permission only. */
static bool is_its_client(struct connection *connection, const struct job *job)
{
    if (job->adopted)
        return permissions_may_decide(connection, job->holder->uid);
    return job->holder->uid == connection->uid &&
           (job->hold != LEASE_HOLD_PROCESS || job->holder->pid == connection->pid);
}

/* Refuses the former connection's claim, which would otherwise wait for ever. */
static void refuse_former(const struct job *job, const struct connection *connection)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (job->by_lease.id != 0 || job->connection == NULL || job->connection == connection)
        return;
    error_set(&error, BERTH_ERROR_CANCELLED, "another connection has taken over this claim");
    connection_refuse(job->connection, job->number, &error);
}

/* Assigns an existing job to the connection: its client has reconnected. */
static void attach_client(struct connection *connection, struct wire_message *message,
                          struct job *job)
{
    struct pool *pool = pool_of(connection);
    struct berth_error error = BERTH_ERROR_INIT;

    if (!is_its_client(connection, job)) {
        error_set(&error, BERTH_ERROR_INVALID, "cannot claim: another client uses this token");
        connection_refuse(connection, message->number, &error);
        return;
    }
    refuse_former(job, connection);
    job_attach(job, connection, message->number);
    if (quota_may_log(connection->quota))
        log_line(&pool->log, pool_clock_now(&pool->clock), "attached", "id=%" PRIu64 " pid=%d",
                 job->by_id.id, (int)connection->pid);
    if (job->by_lease.id != 0 && !job_is_preparing(job)) {
        engine_events_send_grant(pool, job);
        lease_warnings_limit(pool, job);
        if (job->end != 0 && job->guard != NULL)
            lease_ending_send_notice(pool, job, job->end, job->guard->force_at);
        return;
    }
    engine_events_send_waiting(job);
}

/* Returns the request's maximum wait. */
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

    if (last != NULL && last->holder->pid == connection->pid &&
        last->holder->parent == message->parent && last->holder->wait == wait &&
        (command == NULL
             ? last->holder->command == NULL
             : last->holder->command != NULL && strcmp(command, last->holder->command) == 0)) {
        last->holder->users++;
        return last->holder;
    }
    holder = job_holder_new(connection->uid, connection->pid, message->parent, command);
    if (holder != NULL) {
        holder->wait = wait;
        job_holder_note_session(holder);
    }
    return holder;
}

/* Returns whether the devices must be prepared before the holder is notified. */
static bool needs_preparing(const struct pool *pool, const struct wire_message *message,
                            const struct claimant *claimant)
{
    if (claimant->adopted)
        return false;
    return message->request->sharing == SHARING_MPS ||
           (message->parent == 0 && pool->rules.prolog.argv.count > 0);
}

struct job *handle_claim_new_job(struct connection *connection, const struct wire_message *message,
                                 const struct claimant *claimant)
{
    struct holder *holder = claimant->adopted ? job_holder_new(claimant->uid, claimant->pid,
                                                               message->parent, message->command)
                                              : holder_of(connection, message);
    struct job *job = holder == NULL ? NULL : job_new(pool_of(connection), connection, holder);

    job_holder_release(holder);
    if (job == NULL)
        return NULL;
    job->number = message->number;
    job->by_token.id = message->token[0];
    job->token_low = message->token[1];
    job->hold = message->hold;
    job->adopted = claimant->adopted;
    if (claimant->adopted)
        job->holder->began = claimant->began;
    if (claimant->container != NULL)
        job_keep_container(pool_of(connection), job, claimant->container);
    job->unprepared = needs_preparing(pool_of(connection), message, claimant);
    job->since = pool_clock_now(&pool_of(connection)->clock);
    job->kib = (uint8_t)(pool_of(connection)->clients.packet_length / KIB);
    return job;
}

int64_t handle_claim_deadline(const struct pool *pool, const struct request *request)
{
    int64_t now = pool_clock_now(&pool->clock);

    return request->wait.known && request->wait.value < (uint64_t)(TIME_NEVER - now)
               ? now + (int64_t)request->wait.value
               : TIME_NEVER;
}

/* Checks whether the claim may wait. Fails with BERTH_ERROR_BUSY, or with _LIMIT if too many claims
 * of the user already wait. */
static int check_wait(const struct connection *connection, const struct request *request,
                      struct berth_error *error)
{
    return request->nonblock
               ? error_set(error, BERTH_ERROR_BUSY, "no free device (--nonblock)")
               : quota_check_waiting(connection->quota, pool_of(connection)->clients.packet_length,
                                     error);
}

/* Claims in the engine. Returns as engine_claim(), or fails as check_wait() instead of waiting. */
static int claim_in_engine(const struct connection *connection, const struct wire_message *message,
                           struct cached_request *cached, uint64_t *ret_id,
                           struct berth_error *error)
{
    struct pool *pool = pool_of(connection);
    const struct request *request = message->request;
    struct berth_error why = BERTH_ERROR_INIT;

    if (check_wait(connection, request, &why) < 0) {
        int code = engine_would_grant(pool->engine, cached->request, error);

        if (code == CLAIM_WAITS)
            return error_set(error, why.code, "%s", why.message);
        if (code < 0)
            return code;
    }
    return engine_claim(pool->engine, cached->request, handle_claim_deadline(pool, request), NULL,
                        ret_id, error);
}

int handle_claim_submit(struct connection *connection, const struct wire_message *message,
                        const struct claimant *claimant, struct cached_request *cached,
                        struct berth_error *error)
{
    struct pool *pool = pool_of(connection);
    struct job *job = handle_claim_new_job(connection, message, claimant);
    uint64_t id = 0;
    int code;

    if (job == NULL)
        return error_set_memory(error);
    code = claim_in_engine(connection, message, cached, &id, error);
    if (code < 0) {
        job_free(pool, job);
        return code;
    }
    job_add(pool, job, id, code == CLAIM_GRANTED ? id : 0);
    journal_write_job(pool, job);
    if (code == CLAIM_GRANTED) {
        engine_events_granted(pool, job);
        return 0;
    }
    if (quota_may_log(connection->quota))
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

int handle_claim_reserve(struct pool *pool, struct berth_error *error)
{
    return journal_file_reserve(
        &pool->journal, RECORDS_OF_CLAIM + REQUEST_MARGIN * pool->clients.packet_length, error);
}

void handle_claim_refuse(struct connection *connection, uint64_t number, struct berth_error *error)
{
    pool_counts_add_refused(&pool_of(connection)->counts, error->code);
    probe_poll_explain(pool_of(connection)->probe_poll, error);
    connection_refuse(connection, number, error);
}

static int claim_devices(struct connection *connection, struct wire_message *message,
                         struct berth_error *error)
{
    struct pool *pool = pool_of(connection);
    const struct claimant client = client_of(connection);
    struct cached_request *cached = NULL;
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
    code = handle_claim_reserve(pool, error);
    if (code == 0 && message->pid != 0)
        return handle_adopt_claim(connection, message, error);
    /* Leases within leases have no other limit. */
    if (code == 0 && message->parent != 0)
        code = quota_check_waiting(connection->quota, pool->clients.packet_length, error);
    if (code == 0)
        code = handle_claim_open_request(connection, message, &client, &cached, error);
    if (code < 0)
        return code;
    assert(cached != NULL);
    code = handle_claim_submit(connection, message, &client, cached, error);
    request_cache_release(pool, cached);
    return code;
}

void handle_claim_now(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    struct job *job = job_of_token(pool, message->token);
    struct berth_error error = BERTH_ERROR_INIT;

    if (job != NULL) {
        attach_client(connection, message, job);
        return;
    }
    if (claim_devices(connection, message, &error) < 0) {
        handle_claim_refuse(connection, message->number, &error);
    }
}

void handle_claim(struct connection *connection, struct wire_message *message)
{
    if (job_of_token(pool_of(connection), message->token) != NULL ||
        !deferred_claims_take(connection, message))
        handle_claim_now(connection, message);
}

/* ---- Tests ---- */

/* Adds a watcher that answers once the request would be granted. */
static int wait_for_grant(struct connection *connection, const struct wire_message *message,
                          struct cached_request *cached, struct berth_error *error)
{
    struct pool *pool = pool_of(connection);
    const struct request *request = message->request;
    struct watcher *watcher;

    if (request->nonblock)
        return error_set(error, BERTH_ERROR_BUSY, "no free device (--nonblock)");
    watcher = watcher_new(connection, message->number, cached, error);
    if (watcher == NULL)
        return error == NULL ? BERTH_ERROR_LIMIT : error->code;
    watcher->deadline = handle_claim_deadline(pool, request);
    watcher->wait = request->wait.known ? (int64_t)request->wait.value : 0;
    pool->changed = true;
    return 0;
}

void handle_test_now(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    struct berth_error error = BERTH_ERROR_INIT;
    const struct claimant client = client_of(connection);
    struct cached_request *cached = NULL;
    int code = handle_claim_reserve(pool, &error);

    if (code == 0)
        code = handle_claim_open_request(connection, message, &client, &cached, &error);
    if (code == 0 && cached != NULL)
        code = engine_would_grant(pool->engine, cached->request, &error);
    if (code == CLAIM_GRANTED)
        connection_send(connection,
                        &(struct wire_message){.type = WIRE_DONE, .number = message->number});
    else if (code == CLAIM_WAITS && cached != NULL)
        code = wait_for_grant(connection, message, cached, &error);
    if (code < 0)
        connection_refuse(connection, message->number, &error);
    request_cache_release(pool, cached);
}

void handle_test(struct connection *connection, struct wire_message *message)
{
    if (!deferred_claims_take(connection, message))
        handle_test_now(connection, message);
}
