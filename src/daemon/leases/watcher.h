/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of clients that wait for an answer: WATCH, TEST, FOLLOW and claims that adopt.
 */
#ifndef DAEMON_LEASES_WATCHER_H
#define DAEMON_LEASES_WATCHER_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "daemon/stream/followers.h"
#include "reader/reader_messages.h"
#include "wire/wire.h"

struct cached_request;
struct connection;

/* A client's request for a later answer: when a job ends, when a request would be granted, when the
 * pool changes, or when a process can be adopted. */
struct watcher {
    struct list_link in_pool;
    struct list_link in_connection;
    struct stream_follower follower; /* of WIRE_FOLLOW */
    struct connection *connection;
    uint64_t number;
    uint64_t id;                   /* of WIRE_WATCH; 0: another request */
    struct cached_request *cached; /* of WIRE_TEST */
    size_t bytes;                  /* of the message, for the user's quota */
    struct wire_message *adopting; /* a claim that waits for the end of another lease; NULL: none */
    struct reader_answer facts;    /* of that process */
    int64_t deadline;              /* in the pool's time; TIME_NEVER: none */
    int64_t wait;                  /* the timeout, for messages; 0: none */
};

/* Creates a watcher. `asked` (of WIRE_TEST, else NULL) gets a reference. Returns NULL with
 * BERTH_ERROR_MEMORY, or with BERTH_ERROR_LIMIT if the connection or its user has too many. */
struct watcher *watcher_new(struct connection *connection, uint64_t number,
                            struct cached_request *cached, struct berth_error *error);
/* Frees the watcher, without an answer. */
void watcher_free(struct watcher *watcher);

#endif
