/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that claim, sent to a stage.
 */
#ifndef TESTS_CLAIM_MESSAGES_H
#define TESTS_CLAIM_MESSAGES_H

#include "support/unit.h"

#include "daemon/handlers/handle.h"
#include "support/daemons/played_locks.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"

/* Sends the message as a client does, and finishes it. */
static inline void send_message(struct pool_stage *stage, const struct stage_client *client,
                                struct wire_message *message)
{
    stage->pool.clients.packet_length = 3 * 1024;
    handle_message(client->connection, message);
    engine_events_settle(&stage->pool);
    wire_message_finish(message);
}

static inline void send_claim(struct pool_stage *stage, const struct stage_client *client,
                              const char *words)
{
    struct wire_message message = pool_stage_message(stage, words);

    send_message(stage, client, &message);
}

/* Sends TEST. */
static inline void send_test(struct pool_stage *stage, const struct stage_client *client,
                             const char *words, bool nonblock, int64_t wait)
{
    struct wire_message message = pool_stage_message(stage, words);

    message.type = WIRE_TEST;
    message.request->nonblock = nonblock;
    if (wait != 0)
        message.request->wait = optional_number_of((uint64_t)wait);
    send_message(stage, client, &message);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, pool_stage_begin, pool_stage_end)

#endif
