/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/watcher.h"

#include <stdlib.h>

#include "base/error.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/quota.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/request_cache.h"
#include "reader/reader.h"

struct watcher *watcher_new(struct connection *connection, uint64_t number,
                            struct cached_request *cached, struct berth_error *error)
{
    struct watcher *watcher;

    if (connection->watcher_count >= WATCHERS_MAX) {
        error_set(error, BERTH_ERROR_LIMIT, "too many waiting requests on this connection");
        return NULL;
    }
    if (quota_check_waiting(connection->quota, pool_of(connection)->clients.packet_length, error) <
        0)
        return NULL;
    watcher = calloc(1, sizeof(*watcher));
    if (watcher == NULL) {
        error_set_memory(error);
        return NULL;
    }
    watcher->cached = cached;
    if (cached != NULL)
        cached->users++;
    watcher->bytes = pool_of(connection)->clients.packet_length;
    quota_wait(connection->quota, watcher->bytes);
    watcher->connection = connection;
    watcher->number = number;
    watcher->deadline = TIME_NEVER;
    list_append(&pool_of(connection)->watchers, &watcher->in_pool);
    list_append(&connection->watchers, &watcher->in_connection);
    connection->watcher_count++;
    return watcher;
}

void watcher_free(struct watcher *watcher)
{
    struct pool *pool = pool_of(watcher->connection);

    quota_wait_over(watcher->connection->quota, watcher->bytes);
    watcher->connection->watcher_count--;
    list_remove(&watcher->in_pool);
    list_remove(&watcher->in_connection);
    followers_remove(&watcher->follower);
    request_cache_release(pool, watcher->cached);
    if (watcher->adopting != NULL)
        wire_message_finish(watcher->adopting);
    free(watcher->adopting);
    reader_answer_finish(&watcher->facts);
    free(watcher);
}
