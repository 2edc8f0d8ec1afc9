/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/handlers/deferred_claims.h"

#include <stdlib.h>

#include "base/text/quantity.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/quota.h"
#include "daemon/devices/device_locks.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/handlers/handle.h"
#include "daemon/handlers/handle_adopt.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/probe_events.h"

struct deferred_claim {
    struct list_link in_pool;
    struct connection *connection;
    struct wire_message message;
    size_t packet_length;
    uint64_t looks; /* the number of the report that it waits for; 0: none */

    bool is_early;
    /* Of an early message: */
    uint64_t search;    /* the last search that it waits for */
    bool waits_for_all; /* also for searches of other users */
    int64_t since;      /* in the loop's time */
    int64_t waited;     /* reader_pool_waited() then */
};

/* The time that an early message waits. On a busy machine, where the readers wait for a CPU, it
 * waits until they have worked for this time, but at most for EARLY_BUSY_MAX. */
#define EARLY_MAX      (DURATION_SECOND / 20)
#define EARLY_BUSY_MAX DURATION_SECOND

/* The interval between checks of the readers' work. */
#define EARLY_STEP (DURATION_SECOND / 100)

/* The maximum number of early messages of one user. Further ones do not wait. */
enum { EARLY_OF_USER_MAX = 64 };

/* Returns the number of the report that the message must wait for. A claim or test that does not
 * wait may have the devices that are in handover now, so their processes are checked first. */
static uint64_t looks_for(const struct pool *pool, const struct wire_message *message)
{
    return message->request != NULL && message->request->nonblock
               ? probe_poll_reports_needed(pool->probe_poll)
               : 0;
}

/* Keeps a message, whose contents it takes. Returns NULL without memory. */
static struct deferred_claim *keep_message(struct connection *connection,
                                           struct wire_message *message, struct list *list)
{
    struct deferred_claim *postponed = calloc(1, sizeof(*postponed));

    if (postponed == NULL)
        return NULL;
    postponed->connection = connection;
    postponed->message = *message;
    postponed->packet_length = pool_of(connection)->clients.packet_length;
    *message = (struct wire_message){.type = message->type, .number = message->number};
    quota_wait(connection->quota, postponed->packet_length);
    list_append(list, &postponed->in_pool);
    return postponed;
}

bool deferred_claims_take(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    bool unsettled = device_locks_are_unsettled(pool->device_locks);
    uint64_t looks = looks_for(pool, message);
    struct berth_error error = BERTH_ERROR_INIT;
    struct deferred_claim *postponed;

    unsettled = probe_events_must_wait(pool, message->pid != 0) || unsettled;
    if (!unsettled && looks == 0 && list_is_empty(&pool->deferred_claims))
        return false;
    if (quota_check_waiting(connection->quota, pool->clients.packet_length, &error) < 0) {
        connection_refuse(connection, message->number, &error);
        return true;
    }
    postponed = keep_message(connection, message, &pool->deferred_claims);
    if (postponed == NULL)
        return false;
    postponed->looks = looks;
    return true;
}

static void free_claim(struct deferred_claim *postponed)
{
    list_remove(&postponed->in_pool);
    if (postponed->is_early && postponed->connection->quota != NULL)
        postponed->connection->quota->early--;
    quota_wait_over(postponed->connection->quota, postponed->packet_length);
    wire_message_finish(&postponed->message);
    free(postponed);
}

/* Frees the claim and passes its message on. */
static void pass_on(struct pool *pool, struct deferred_claim *postponed,
                    void (*handle)(struct connection *, struct wire_message *))
{
    struct connection *connection = postponed->connection;
    struct wire_message message = postponed->message;

    pool->clients.packet_length = postponed->packet_length;
    postponed->message = (struct wire_message){0};
    free_claim(postponed);
    handle(connection, &message);
    wire_message_finish(&message);
}

void deferred_claims_continue(struct pool *pool)
{
    /* Connections are closed at the end of the turn, so all of them stay valid here. */
    list_for_each (link, &pool->deferred_claims) {
        struct deferred_claim *postponed = container_of(link, struct deferred_claim, in_pool);

        if (device_locks_are_awaited(pool->device_locks) ||
            probe_poll_is_awaited(pool->probe_poll) ||
            (postponed->looks > probe_poll_report_count(pool->probe_poll) &&
             handover_is_pending(pool)))
            break;
        pass_on(pool, postponed,
                postponed->message.type == WIRE_CLAIM ? handle_claim_now : handle_test_now);
    }
    engine_events_settle(pool);
}

/* ---- Early messages ---- */

/* Returns whether a search up to number `last` still runs that the account's messages wait for.
 * Searches of users whose requests are slow delay no other user. */
static bool is_search_out(const struct pool *pool, uint64_t last, uint32_t account,
                          bool waits_for_all)
{
    list_for_each (link, &pool->looks) {
        const struct lease_watch *guard = container_of(link, const struct lease_watch, in_looks);

        if (guard->look_number > last)
            return false;
        if (guard->job->holder->account == account ||
            (waits_for_all && !reader_pool_is_slow(pool->readers, guard->job->holder->account)))
            return true;
    }
    return false;
}

/* Returns the connection's last early message; NULL: none. */
static const struct deferred_claim *find_earlier(const struct connection *connection)
{
    const struct deferred_claim *last = NULL;

    list_for_each (link, &pool_of(connection)->early_messages) {
        const struct deferred_claim *other = container_of(link, struct deferred_claim, in_pool);

        if (other->connection == connection)
            last = other;
    }
    return last;
}

static void early_messages_are_due(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, early_timer);

    pool->has_looked = true;
    deferred_claims_continue_early(pool);
}

bool deferred_claims_take_early(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    struct quota *quota = connection->quota;
    const struct deferred_claim *earlier = pool->is_resuming ? NULL : find_earlier(connection);
    bool waits_for_all = (message->request != NULL && message->request->nonblock) ||
                         (earlier != NULL && earlier->waits_for_all);
    struct deferred_claim *postponed;

    if (pool->is_resuming || (quota != NULL && quota->early >= EARLY_OF_USER_MAX) ||
        (earlier == NULL &&
         !is_search_out(pool, pool->look_count, connection->account, waits_for_all)) ||
        quota_check_waiting(quota, pool->clients.packet_length, NULL) < 0)
        return false;
    postponed = keep_message(connection, message, &pool->early_messages);
    if (postponed == NULL)
        return false;
    postponed->is_early = true;
    postponed->waits_for_all = waits_for_all;
    postponed->search = pool->look_count;
    postponed->since = loop_now(&pool->loop);
    postponed->waited = reader_pool_waited(pool->readers);
    if (quota != NULL)
        quota->early++;
    pool->early_timer.fire = early_messages_are_due;
    if (!list_is_linked(&pool->early_timer.in_loop))
        loop_set_timer(&pool->loop, &pool->early_timer, postponed->since + EARLY_MAX);
    return true;
}

/* Returns whether the message has waited long enough. */
static bool is_early_over(const struct pool *pool, const struct deferred_claim *postponed)
{
    int64_t age = loop_now(&pool->loop) - postponed->since;

    return age >= EARLY_BUSY_MAX ||
           (age >= EARLY_MAX && reader_pool_waited(pool->readers) - postponed->waited >= EARLY_MAX);
}

/* Sets the timer for the first early message, whose time is over first. */
static void set_early_timer(struct pool *pool)
{
    int64_t now = loop_now(&pool->loop);
    int64_t due;

    if (list_is_empty(&pool->early_messages))
        return;
    due = container_of(list_first(&pool->early_messages), struct deferred_claim, in_pool)->since +
          EARLY_MAX;
    loop_set_timer(&pool->loop, &pool->early_timer, due > now ? due : now + EARLY_STEP);
}

/* No message overtakes an earlier one of its connection: it waits for at least the same searches,
 * and as long. */
void deferred_claims_continue_early(struct pool *pool)
{
    if (!pool->has_looked)
        return;
    pool->has_looked = false;
    list_for_each (link, &pool->early_messages) {
        struct deferred_claim *postponed = container_of(link, struct deferred_claim, in_pool);

        if (!is_early_over(pool, postponed) &&
            is_search_out(pool, postponed->search, postponed->connection->account,
                          postponed->waits_for_all))
            continue;
        pool->is_resuming = true;
        pass_on(pool, postponed, handle_message);
        pool->is_resuming = false;
    }
    engine_events_settle(pool);
    set_early_timer(pool);
}

static void forget_claims(struct list *list, const struct connection *connection)
{
    list_for_each (link, list) {
        struct deferred_claim *postponed = container_of(link, struct deferred_claim, in_pool);

        if (connection == NULL || postponed->connection == connection)
            free_claim(postponed);
    }
}

void deferred_claims_forget(struct pool *pool, const struct connection *connection)
{
    forget_claims(&pool->deferred_claims, connection);
    forget_claims(&pool->early_messages, connection);
    handle_adopt_forget(pool, connection);
}
