/* SPDX-License-Identifier: Apache-2.0
 *
 * The dispatcher of messages.
 */
#include "daemon/handlers/handle.h"

#include "base/count.h"
#include "base/error.h"
#include "daemon/clients/connection.h"
#include "daemon/handlers/deferred_claims.h"
#include "wire/wire.h"

/* Returns whether the answer depends on which devices are free. */
static bool is_about_devices(enum wire_type type)
{
    return type == WIRE_CLAIM || type == WIRE_TEST || type == WIRE_LOOK || type == WIRE_EXPLAIN;
}

void handle_message(struct connection *connection, struct wire_message *message)
{
    static void (*const handlers[])(struct connection *, struct wire_message *) = {
        [WIRE_HELLO] = handle_hello,     [WIRE_CLAIM] = handle_claim,
        [WIRE_RELEASE] = handle_release, [WIRE_CANCEL] = handle_cancel,
        [WIRE_STOP] = handle_stop,       [WIRE_EXTEND] = handle_extend,
        [WIRE_EXPLAIN] = handle_explain, [WIRE_WATCH] = handle_watch,
        [WIRE_TEST] = handle_test,       [WIRE_LOOK] = handle_look,
        [WIRE_DRAIN] = handle_drain,     [WIRE_UNDRAIN] = handle_undrain,
        [WIRE_FOLLOW] = handle_follow,
    };
    struct berth_error error = BERTH_ERROR_INIT;

    if (is_about_devices(message->type) && deferred_claims_take_early(connection, message))
        return;
    if ((size_t)message->type < COUNT(handlers) && handlers[message->type] != NULL) {
        handlers[message->type](connection, message);
        return;
    }
    error_set(&error, BERTH_ERROR_INVALID,
              "unknown message type %d; the client may be newer than the daemon",
              (int)message->type);
    connection_refuse(connection, message->number, &error);
}
