/* SPDX-License-Identifier: Apache-2.0
 *
 * The clients of a daemon without its pool: a loop whose time the test sets, a log without a
 * reader, and callbacks that count.
 */
#ifndef TESTS_CLIENTS_STAGE_H
#define TESTS_CLIENTS_STAGE_H

#include "support/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text/quantity.h"
#include "daemon/clients/clients.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/quota.h"
#include "spec/configuration/configuration.h"
#include "wire/wire.h"

enum { STAGE_OWNER = 500 };
#define STAGE_NOW (1000 * DURATION_SECOND)

struct stage {
    struct loop loop;
    struct log log;
    struct pool_clock clock;
    struct configuration rules;
    struct clients clients;
    int descriptor;     /* of the log */
    uint64_t last_turn; /* of the loop; its number */

    /* Set by the callbacks. */
    int received;
    enum wire_type last_type;
    uint64_t last_number;
    int closed;
    int settled;
    int sent_to_recorder;
    bool is_behind; /* the journal */
    bool answers;   /* each message with DONE */
};

static inline void stage_receive(void *context, struct connection *connection,
                                 struct wire_message *message)
{
    struct stage *stage = context;

    stage->received++;
    stage->last_type = message->type;
    stage->last_number = message->number;
    if (stage->answers)
        connection_send(connection,
                        &(struct wire_message){.type = WIRE_DONE, .number = message->number});
}

static inline void stage_count_sent(void *context, int type)
{
    struct stage *stage = context;

    (void)type;
    stage->sent_to_recorder++;
}

static inline void stage_settle(void *context)
{
    struct stage *stage = context;

    stage->settled++;
}

static inline bool stage_must_wait(void *context)
{
    const struct stage *stage = context;

    return stage->is_behind;
}

static inline void stage_count_closed(void *context, struct connection *connection)
{
    struct stage *stage = context;

    (void)connection;
    stage->closed++;
}

/* The loop's clock: the stage's time does not pass by itself. */
static inline int64_t stage_read_clock(clockid_t clock)
{
    (void)clock;
    return STAGE_NOW;
}

/* A setup function for cmocka. */
static inline int stage_begin(void **state)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    if (stage == NULL || loop_init(&stage->loop, NULL) < 0)
        return -1;
    stage->loop.read_clock = stage_read_clock;
    stage->descriptor = open("/dev/null", O_WRONLY | O_CLOEXEC);
    stage->rules.bounds = (struct bounds){.connections = 2, .messages = 100, .waiting = 3};
    stage->loop.now = STAGE_NOW;
    stage->clock = (struct pool_clock){.loop = &stage->loop};
    log_init(&stage->log, &stage->loop, stage->descriptor, NULL);
    listener_init(&stage->clients.listener, "berth.sock", -1, false);
    if (clients_init(&stage->clients,
                     &(struct clients_settings){
                         .loop = &stage->loop,
                         .log = &stage->log,
                         .clock = &stage->clock,
                         .rules = &stage->rules,
                         .owner = STAGE_OWNER,
                         .callbacks = {.received = stage_receive,
                                       .sent_to_recorder = stage_count_sent,
                                       .settle = stage_settle,
                                       .must_wait = stage_must_wait,
                                       .closed = stage_count_closed,
                                       .context = stage},
                     },
                     NULL) < 0)
        return -1;
    quota_share_descriptors(&stage->clients, 1000000);
    *state = stage;
    return 0;
}

static inline int stage_end(void **state)
{
    struct stage *stage = *state;

    list_for_each (link, &stage->clients.connections)
        connection_close(container_of(link, struct connection, in_clients));
    clients_finish(&stage->clients);
    log_finish(&stage->log);
    loop_finish(&stage->loop);
    close(stage->descriptor);
    configuration_finish(&stage->rules);
    free(stage);
    return 0;
}

/* Sets the time and fires the timers that are due then. */
static inline void stage_go_to(struct stage *stage, int64_t time)
{
    stage->loop.now = time;
    while (!list_is_empty(&stage->loop.timers)) {
        struct timer *timer = container_of(list_first(&stage->loop.timers), struct timer, in_loop);

        if (timer->at > time)
            break;
        loop_set_timer(&stage->loop, timer, LOOP_NEVER);
        timer->fire(timer);
    }
}

/* Lets the loop run one turn. Something must be ready. */
static inline void stage_before_turn(void *context)
{
    struct stage *stage = context;

    clients_end_turn(&stage->clients);
    if (stage->clients.quotas.turn > stage->last_turn)
        stage->loop.ended = true;
}

static inline void stage_after_wait(void *context)
{
    struct stage *stage = context;

    clients_begin_turn(&stage->clients);
}

static inline void stage_take_turn(struct stage *stage)
{
    stage->last_turn = stage->clients.quotas.turn;
    stage->loop.ended = false;
    loop_run(&stage->loop, &(struct loop_turn){stage_before_turn, stage_after_wait, stage});
    stage->loop.now = STAGE_NOW;
}

/* Sends a message without fields from the client's end. */
static inline void stage_send(int client, enum wire_type type, uint64_t number)
{
    struct text packet = {0};

    assert_int_equal(
        wire_encode(&(struct wire_message){.type = type, .number = number}, &packet, NULL), 0);
    assert_int_equal(send(client, packet.bytes, packet.length, MSG_DONTWAIT | MSG_NOSIGNAL),
                     packet.length);
    text_finish(&packet);
}

/* Returns the type of the next answer; 0: the connection is closed; -1: there is none yet. */
static inline int stage_receive_type(int client)
{
    unsigned char packet[4096];
    ssize_t length = recv(client, packet, sizeof(packet), MSG_DONTWAIT);

    return length < 0 ? -1 : length < WIRE_HEADER_SIZE ? 0 : packet[1];
}

#endif
