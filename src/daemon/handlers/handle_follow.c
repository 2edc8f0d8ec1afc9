/* SPDX-License-Identifier: Apache-2.0
 *
 * FOLLOW: a client asks for notifications about the pool.
 */
#include <limits.h>

#include "base/error.h"
#include "daemon/clients/connection.h"
#include "daemon/handlers/handle.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/watcher.h"
#include "daemon/stream/followers.h"

/* Ends the connection's former FOLLOW: a connection follows once. */
static void drop_former_follower(struct connection *connection)
{
    list_for_each (link, &connection->watchers) {
        struct watcher *watcher = container_of(link, struct watcher, in_connection);

        if (list_is_linked(&watcher->follower.in_followers))
            watcher_free(watcher);
    }
}

void handle_follow(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    struct berth_error error = BERTH_ERROR_INIT;
    struct watcher *watcher = NULL;

    drop_former_follower(connection);
    if ((message->kinds & WIRE_NEWS_ALL) == 0)
        error_set(
            &error, BERTH_ERROR_INVALID,
            "unknown kind of notification in the set %u; the client may be newer than the daemon",
            message->kinds);
    else
        watcher = watcher_new(connection, message->number, NULL, &error);
    if (watcher == NULL) {
        connection_refuse(connection, message->number, &error);
        return;
    }
    watcher->follower = (struct stream_follower){
        .knows_epoch = message->epoch == followers_epoch(pool->followers),
        .mark = message->after,
        .ended = message->id,
        .kinds = message->kinds,
        .interval = message->duration > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)message->duration,
        .notified_at = connection->notified_at,
        .is_recorder = connection->is_recorder,
    };
    followers_add(pool->followers, &watcher->follower);
}
