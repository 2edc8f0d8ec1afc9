/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's connection: packets in and out.
 */
#ifndef DAEMON_CLIENTS_CONNECTION_H
#define DAEMON_CLIENTS_CONNECTION_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/text/text.h"
#include "daemon/core/loop.h"
#include "wire/wire.h"

struct clients;
struct quota;

struct connection {
    struct watch watch;
    struct clients *clients;
    struct list_link in_clients;
    pid_t pid;
    uint32_t uid;     /* by the kernel: decides about rights */
    uint32_t account; /* the user that the uid counts as: decides about limits */
    uint32_t gid;
    uint32_t *groups; /* gid and the supplementary groups; NULL: only gid, or not read yet */
    size_t group_count;
    bool groups_known;
    struct quota *quota; /* NULL: without bounds */
    struct list_link in_quota;
    bool is_recorder;           /* belongs to the daemon's own recorder */
    struct list_link in_queue;  /* of the user's quota, while it waits for its turn */
    struct list_link in_silent; /* until the first message */
    int64_t silent_since;
    int64_t pinged_at;    /* when its last free ping arrived, or its first one; 0: none */
    struct list jobs;     /* the jobs whose events this client gets */
    struct list watchers; /* requests that wait for an answer */
    size_t watcher_count;
    int64_t notified_at; /* in the loop's time; 0: not yet */
    size_t job_count;
    struct text out; /* packets that wait, each after its length (u32) */
    size_t sent;     /* bytes of `out` that are sent */
    size_t unread;   /* the other bytes */
    bool wants_out;  /* waits until it is writable */
    bool closing;    /* is closed at the end of this turn */
    struct list_link in_closing;
};

/* Opens a connection for an accepted socket and takes the descriptor. Turns the client away if a
 * bound is reached. `is_full`: there is no further descriptor. */
void connection_open(struct clients *clients, int descriptor, bool is_full);

/* Opens the connection to the daemon's recorder and takes the descriptor. Returns NULL if memory
 * runs out; the descriptor is still the caller's then. */
struct connection *connection_open_recorder(struct clients *clients, int descriptor);

/* Sends a message, or keeps it until there is room. Closes the connection of a client that leaves
 * too much unread. */
void connection_send(struct connection *connection, const struct wire_message *message);

/* Refuses the request with this number. */
void connection_refuse(struct connection *connection, uint64_t number,
                       const struct berth_error *error);

/* Sends the reason and closes the connection at the end of this turn. */
void connection_fail(struct connection *connection, const struct berth_error *error);

/* Reads from a connection whose turn has come (quota.h). */
void connection_serve(struct connection *connection);

/* Sends the packets that wait. */
void connection_flush(struct connection *connection);

/* Closes the connection at once and frees it. */
void connection_close(struct connection *connection);

#endif
