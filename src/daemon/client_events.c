/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/client_events.h"

#include "daemon/clients/connection.h"
#include "daemon/handlers/deferred_claims.h"
#include "daemon/handlers/handle.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/job.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/recorder_events.h"
#include "daemon/leases/watcher.h"
#include "daemon/stream/recorder_process.h"

static void handle_received(void *context, struct connection *connection,
                            struct wire_message *message)
{
    struct pool *pool = context;

    if (connection->is_recorder && message->type == WIRE_FOLLOW)
        recorder_process_asked(pool->recorder_process);
    handle_message(connection, message);
}

static void note_sent_news(void *context, int type)
{
    struct pool *pool = context;

    if (type == WIRE_NEWS)
        recorder_process_answered(pool->recorder_process);
}

static void settle_pool(void *context)
{
    engine_events_settle(context);
}

static bool is_journal_behind(void *context)
{
    struct pool *pool = context;

    return journal_file_is_behind(&pool->journal);
}

static void forget_client(void *context, struct connection *connection)
{
    client_events_forget(context, connection);
}

int client_events_init(struct pool *pool, struct berth_error *error)
{
    const struct pool_settings *settings = &pool->settings;
    struct listener *listener = &pool->clients.listener;

    listener_init(listener, settings->socket, settings->listener, settings->owns_path);
    listener->is_own = settings->own;
    listener->has_parent = settings->inventory != NULL;
    return clients_init(&pool->clients,
                        &(struct clients_settings){
                            .loop = &pool->loop,
                            .log = &pool->log,
                            .clock = &pool->clock,
                            .rules = &pool->rules,
                            .accounts = &pool->accounts,
                            .owner = pool->owner,
                            .callbacks =
                                {
                                    .received = handle_received,
                                    .sent_to_recorder = note_sent_news,
                                    .settle = settle_pool,
                                    .must_wait = is_journal_behind,
                                    .closed = forget_client,
                                    .context = pool,
                                },
                        },
                        error);
}

void client_events_finish(struct pool *pool)
{
    clients_finish(&pool->clients);
}

void client_events_forget(struct pool *pool, struct connection *connection)
{
    if (connection->is_recorder)
        recorder_events_hung_up(pool);
    list_for_each (link, &connection->watchers)
        watcher_free(container_of(link, struct watcher, in_connection));
    deferred_claims_forget(pool, connection);
    job_lose_client(pool, connection);
}

void client_events_close_all(struct pool *pool)
{
    list_for_each (link, &pool->clients.connections) {
        struct connection *connection = container_of(link, struct connection, in_clients);

        job_detach_all(connection);
        connection_close(connection);
    }
    deferred_claims_forget(pool, NULL);
}
