/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/postponed.h"

#include <stdlib.h>

#include "daemon/connection.h"
#include "daemon/handover.h"
#include "daemon/hardware.h"
#include "daemon/messages.h"
#include "daemon/names.h"
#include "daemon/settle.h"
#include "daemon/users.h"

struct postponed {
    struct list_link in_pool;
    struct connection *connection;
    struct wire_message message;
    size_t packet_length;
    uint64_t looks; /* how many there have been when it can be decided; 0: that does not matter */
};

/* Who does not wait is told whether devices are free that were given back a moment ago: what is
 * being handed over now is looked at first, whatever is handed over later. */
static uint64_t looks_for(const struct pool *pool, const struct wire_message *message)
{
    return message->request != NULL && message->request->nonblock ? hardware_looks_needed(pool) : 0;
}

bool postponed_take(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;
    bool unsettled = names_are_unsettled(pool);
    uint64_t looks = looks_for(pool, message);
    struct berth_error error = BERTH_ERROR_INIT;
    struct postponed *postponed;

    unsettled = hardware_must_look(pool, message->pid != 0) || unsettled;
    if (!unsettled && looks == 0 && list_is_empty(&pool->postponed))
        return false;
    if (user_check_waiting(connection->user, pool->packet_length, &error) < 0) {
        connection_refuse(connection, message->number, &error);
        return true;
    }
    postponed = calloc(1, sizeof(*postponed));
    if (postponed == NULL)
        return false;
    postponed->connection = connection;
    postponed->message = *message;
    postponed->packet_length = pool->packet_length;
    postponed->looks = looks;
    *message = (struct wire_message){.type = message->type, .number = message->number};
    user_wait(connection->user, postponed->packet_length);
    list_append(&pool->postponed, &postponed->in_pool);
    return true;
}

static void deal_with(struct pool *pool, struct postponed *postponed)
{
    list_remove(&postponed->in_pool);
    user_wait_over(postponed->connection->user, postponed->packet_length);
    pool->packet_length = postponed->packet_length;
    if (postponed->message.type == WIRE_CLAIM)
        message_claim_now(postponed->connection, &postponed->message);
    else
        message_test_now(postponed->connection, &postponed->message);
    wire_message_finish(&postponed->message);
    free(postponed);
}

void postponed_deal_with(struct pool *pool)
{
    /* Connections are closed at the end of the turn, so none of them goes meanwhile. */
    list_for_each (link, &pool->postponed) {
        struct postponed *postponed = container_of(link, struct postponed, in_pool);

        if (names_are_awaited(pool) || hardware_is_awaited(pool) ||
            (postponed->looks > hardware_looks(pool) && handover_is_pending(pool)))
            break;
        deal_with(pool, postponed);
    }
    pool_settle(pool);
}

void postponed_forget(struct pool *pool, const struct connection *connection)
{
    list_for_each (link, &pool->postponed) {
        struct postponed *postponed = container_of(link, struct postponed, in_pool);

        if (connection != NULL && postponed->connection != connection)
            continue;
        list_remove(&postponed->in_pool);
        user_wait_over(postponed->connection->user, postponed->packet_length);
        wire_message_finish(&postponed->message);
        free(postponed);
    }
}
