/* SPDX-License-Identifier: Apache-2.0
 *
 * The clients of a pool: their connections, each user's quota, and the socket that they connect to.
 * The owner of the struct is notified of messages and ends by callbacks. One thread; nothing here
 * blocks unless a header says so.
 */
#ifndef DAEMON_CLIENTS_CLIENTS_H
#define DAEMON_CLIENTS_CLIENTS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/text/text.h"
#include "daemon/clients/listener.h"
#include "daemon/clients/quota.h"
#include "daemon/core/log.h"
#include "daemon/core/loop.h"
#include "daemon/core/pool_clock.h"
#include "daemon/core/rate_limit.h"

struct accounts;
struct configuration;
struct connection;
struct wire_message;

struct clients_callbacks {
    /* A message has arrived. The callback may take values out of it. Connections that fail
     * meanwhile stay valid until the end of the turn. */
    void (*received)(void *context, struct connection *connection, struct wire_message *message);
    /* A message of this type was sent to the daemon's own recorder. */
    void (*sent_to_recorder)(void *context, int type);
    /* Called after each message and after connections were closed. */
    void (*settle)(void *context);
    /* Returns whether answers must wait, because the journal lacks decisions. */
    bool (*must_wait)(void *context);
    /* The connection is about to be freed. */
    void (*closed)(void *context, struct connection *connection);
    void *context;
};

struct clients_settings {
    struct loop *loop;
    struct log *log;
    const struct pool_clock *clock;
    const struct configuration *rules; /* may change between two turns */
    const struct accounts *accounts;   /* NULL: each uid counts as itself */
    uint32_t owner;                    /* of the pool: a uid */
    struct clients_callbacks callbacks;
};

struct clients {
    struct clients_settings settings;
    struct listener listener;
    struct list connections;
    size_t connection_count; /* without the recorder's */
    struct list closing;     /* connections that are closed at the end of the turn */
    struct quotas quotas;
    bool is_deferring;  /* connections that are accepted in this turn are read in the next */
    int reserve;        /* a descriptor to give up where none is left; -1: given up */
    struct timer retry; /* accepts connections again */
    struct rate_limit full_log;
    unsigned char *packet; /* room for the longest */
    size_t packet_length;  /* of the current message */
    struct text answer;    /* the packet that is being encoded */
};

/* Initialises zeroed memory; the pointers in the settings must outlive the clients. Fails with
 * BERTH_ERROR_MEMORY. */
int clients_init(struct clients *clients, const struct clients_settings *settings,
                 struct berth_error *error);
/* All connections must have been closed. Closes the listener. */
void clients_finish(struct clients *clients);

/* Watches the open listener and accepts connections from now on. Fails with BERTH_ERROR_IO. */
int clients_listen(struct clients *clients, struct berth_error *error);

/* For a daemon without clients: closes the listener, unless a client connects at this moment.
 * Returns whether it is closed. */
bool clients_stop_listening(struct clients *clients);

/* Before each wait of the loop: reads from connections whose turn has come, and closes those that
 * failed. */
void clients_end_turn(struct clients *clients);
/* After each wait of the loop. */
void clients_begin_turn(struct clients *clients);

/* Sends the messages that waited for the journal. */
void clients_flush(struct clients *clients);

#endif
