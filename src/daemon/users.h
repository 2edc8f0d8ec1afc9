/* SPDX-License-Identifier: Apache-2.0
 *
 * What each user has of the daemon, so that none can take all of it. Root and the pool's owner are
 * not held back: they have no entry here, and NULL stands for them. docs/ADMIN.md says the bounds.
 */
#ifndef DAEMON_USERS_H
#define DAEMON_USERS_H

#include "daemon/bucket.h"
#include "daemon/pool.h"

struct user {
    struct id_link by_uid;
    struct pool *pool;
    size_t references;  /* connections, and holders of claims and leases */
    size_t connections; /* at once */
    size_t waiting;     /* claims, watchers and leases within leases */
    size_t waiting_bytes;
    size_t unread; /* bytes of answers that it has not read */
    struct bucket messages;
    struct bucket lines; /* of the log */
    size_t lines_left_out;
    uint64_t turn;     /* of the loop, in which it was served last */
    uint32_t spent;    /* of it in that turn */
    struct list queue; /* connections that are not read from before their turn */
    struct list_link in_busy;
    struct list_link in_loose; /* while lines were left out, or nothing refers to it any more */
};

/* Both are to be called once; users_init before any other. */
int users_init(struct pool *pool, struct berth_error *error);
void users_finish(struct pool *pool);

/* How many connections the users may have together, so that some descriptors are left for what the
 * daemon needs itself. `descriptors` is how many it may have. */
void users_share(struct pool *pool, size_t descriptors);

/* The bounds are others now. */
void users_apply_rules(struct pool *pool);

/* The entry of a user, which gets a reference. 0 with NULL: one that has none. Fails with
 * BERTH_ERROR_MEMORY. */
int user_open(struct pool *pool, uint32_t uid, struct user **ret_user);
/* A reference less; NULL is fine. */
void user_close(struct user *user);

/* ---- Connections ---- */

/* One more connection of this user: as user_open, also fails with BERTH_ERROR_LIMIT. */
int user_connect(struct pool *pool, uint32_t uid, struct user **ret_user,
                 struct berth_error *error);
/* It is gone. */
void user_disconnect(struct connection *connection);

/* Those that say nothing are closed after a while: this one begins, this one has said something. */
void users_await(struct connection *connection);
void users_heard(struct connection *connection);

/* ---- Messages ---- */

/* Whether its connection may be read from now. If not, it is kept and not watched any more; its
 * turn comes with connection_serve. */
bool user_may_speak(struct connection *connection);

/* A message of so many bytes was read; so much of the processor's time was spent. */
void user_charge_message(struct user *user, size_t bytes);
void user_charge_time(struct user *user, int64_t time);

/* Serves those whose turn has come. Before each wait of the loop. */
void users_serve(struct pool *pool);

/* ---- What is kept for it ---- */

/* Whether one more thing of so many bytes may wait. Fails with BERTH_ERROR_LIMIT. */
int user_check_waiting(const struct user *user, size_t bytes, struct berth_error *error);
/* It waits; it does no more. NULL is fine. */
void user_wait(struct user *user, size_t bytes);
void user_wait_over(struct user *user, size_t bytes);

/* So many bytes more or less of answers are kept. Returns whether that is not too much. */
bool user_keep_unread(struct user *user, size_t bytes);
void user_forget_unread(struct user *user, size_t bytes);

/* ---- The log ---- */

/* Whether a line that it can bring about without being granted anything may be written. How many
 * were not is told later. NULL is fine. */
bool user_may_log(struct user *user);

#endif
