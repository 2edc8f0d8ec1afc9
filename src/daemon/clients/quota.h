/* SPDX-License-Identifier: Apache-2.0
 *
 * Each user's share of the daemon, so that no user can take everything. Root and the pool's
 * owner have no bounds: NULL stands for them. docs/ADMIN.md describes the bounds.
 */
#ifndef DAEMON_CLIENTS_QUOTA_H
#define DAEMON_CLIENTS_QUOTA_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id_map.h"
#include "base/list.h"
#include "daemon/core/loop.h"
#include "daemon/core/rate_limit.h"

struct clients;
struct connection;

/* The connections that no other user can take from a user. */
enum { QUOTA_CONNECTIONS_SURE = 8 };

/* A line of the log that is longer counts as several. */
enum { QUOTA_LINE_BYTES = 256 };

/* All users except root and the pool's owner. */
struct quotas {
    struct id_map by_uid;
    size_t count;
    size_t connections; /* of all users */
    size_t connections_max;
    uint64_t turn;        /* of the loop */
    struct list busy;     /* users with connections that wait for their turn */
    struct timer resume;  /* the time of the next turn */
    struct list silent;   /* connections without a message so far, oldest first */
    struct timer silence; /* the time at which the first of them is closed */
    struct list review;   /* users to log or to forget */
    struct timer review_timer;
};

struct quota {
    struct id_link by_uid;
    struct clients *clients;
    size_t references;       /* connections, and holders of claims and leases */
    struct list connections; /* newest last */
    size_t connection_count;
    size_t waiting; /* claims, watchers and leases within leases */
    size_t waiting_bytes;
    size_t early;  /* messages that the owner keeps for later */
    size_t unread; /* bytes of answers that the user's clients have not read */
    struct rate_limit messages;
    struct rate_limit lines;       /* of the log, about refused claims and connections */
    struct rate_limit lease_lines; /* of the log, about leases and processes */
    size_t lines_left_out;
    int64_t told_left_out_at; /* in the loop's time; 0: never */
    uint64_t turn;            /* the loop's turn in which the user was served last */
    uint32_t spent;           /* messages in that turn */
    struct list queue;        /* connections that wait for their turn */
    struct list_link in_busy;
    struct list_link in_review; /* while lines were left out, or nothing refers to the user */
};

/* Called by clients_init() and clients_finish(). Fails with BERTH_ERROR_MEMORY. */
int quota_init(struct clients *clients, struct berth_error *error);
void quota_finish(struct clients *clients);

/* Sets the maximum number of connections of all users, for a process that may open this number of
 * descriptors. The daemon keeps some for itself. */
void quota_share_descriptors(struct clients *clients, size_t descriptors);

/* Applies changed bounds. */
void quota_apply_bounds(struct clients *clients);

/* Returns the user's entry with a new reference, or NULL for a user without bounds. Fails with
 * BERTH_ERROR_MEMORY. */
int quota_open(struct clients *clients, uint32_t uid, struct quota **ret_user);
/* Drops a reference; NULL is allowed. */
void quota_close(struct quota *user);

/* ---- Connections ---- */

/* Counts a new connection for the user, whose quota it gets. `is_full`: the daemon has no further
 * descriptor. Each user always gets the first QUOTA_CONNECTIONS_SURE connections: where there is no
 * room, the user with the most connections loses the newest one without a job. Fails as
 * quota_open(), and with BERTH_ERROR_LIMIT. */
int quota_connect(struct connection *connection, uint32_t uid, bool is_full,
                  struct berth_error *error);
void quota_disconnect(struct connection *connection);

/* Closes the connection after a while unless quota_heard() reports its first message. */
void quota_await_message(struct connection *connection);
void quota_heard(struct connection *connection);

/* ---- Messages ---- */

/* Returns whether the connection may be read now. If not, it is not watched until its turn, when
 * connection_serve() is called. */
bool quota_may_speak(struct connection *connection);

/* Charges a message of this number of bytes; nanoseconds of the processor. */
void quota_charge_message(struct quota *user, size_t bytes);
/* Charges a ping (WIRE_HELLO) as a message. After a connection's first one, one in 2 s is free. */
void quota_charge_ping(struct connection *connection, size_t bytes);
void quota_charge_time(struct quota *user, int64_t time);

/* Serves the users whose turn has come. Called before each wait of the loop. */
void quota_serve(struct clients *clients);

/* ---- Requests and answers in memory ---- */

/* Returns 0 if one more request of this number of bytes may wait, or BERTH_ERROR_LIMIT. */
int quota_check_waiting(const struct quota *user, size_t bytes, struct berth_error *error);
/* Counts a waiting request; the opposite. NULL is allowed. */
void quota_wait(struct quota *user, size_t bytes);
void quota_wait_over(struct quota *user, size_t bytes);

/* Counts bytes of unread answers. Returns whether the user is within the bound. */
bool quota_keep_unread(struct quota *user, size_t bytes);
void quota_forget_unread(struct quota *user, size_t bytes);

/* ---- The log ---- */

/* Return whether a line about the user, or about a lease of the user, may be written. Otherwise a
 * later line tells the number of lines that were left out. NULL is allowed. */
bool quota_may_log(struct quota *user);
bool quota_may_log_lease(struct quota *user);
/* Does the same as quota_may_log_lease() for a user who may have no connection, lease or claim. */
bool quota_may_log_user(struct clients *clients, uint32_t uid);
/* Charges a line about a lease that may be long. NULL is allowed. */
void quota_charge_line(struct quota *user, size_t bytes);

#endif
