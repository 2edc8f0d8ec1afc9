/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of each claim and lease beside the engine: who, for whom, on which connection.
 */
#ifndef DAEMON_JOBS_H
#define DAEMON_JOBS_H

#include "daemon/pool.h"

int jobs_init(struct pool *pool, struct berth_error *error);
void jobs_finish(struct pool *pool);

/* A job of this connection (NULL: of none that is there), in no map yet. `holder` gets a user.
 * NULL: no memory. */
struct job *job_new(struct pool *pool, struct connection *connection, struct holder *holder);

/* Puts it into the maps, once its id and, unless it waits, its lease are known. */
void job_add(struct pool *pool, struct job *job, uint64_t id, uint64_t lease);
void job_set_lease(struct pool *pool, struct job *job, uint64_t lease);
/* It is a claim that waits again. */
void job_unset_lease(struct pool *pool, struct job *job);
/* It waits, and counts for its user as that until it has a lease, or until it is freed if it is
 * within another; job_add says so of one without a lease. */
void job_wait(struct job *job);
/* Takes it out of all and frees it. */
void job_free(struct pool *pool, struct job *job);

/* Whether it has devices of which its holder has not been told yet. */
static inline bool job_is_preparing(const struct job *job)
{
    return job->unprepared && job->by_lease.id != 0;
}

struct job *job_of_id(const struct pool *pool, uint64_t id);
struct job *job_of_lease(const struct pool *pool, uint64_t lease);
struct job *job_of_token(const struct pool *pool, const uint64_t token[2]);

/* Joins a job whose client has come back to its connection. */
void job_attach(struct job *job, struct connection *connection, uint64_t number);

/* Its jobs have nobody to be told any more, but are kept. */
void jobs_detach(struct connection *connection);

/* The connection is gone. */
void jobs_lose_client(struct pool *pool, struct connection *connection);

/* The guard of a job, made if it has none; NULL: no memory. */
struct guard *job_guard(struct pool *pool, struct job *job);

/* Who asks: of this connection, running this command, waiting for ever. NULL: no memory. */
struct holder *holder_new(uint32_t uid, pid_t pid, uint64_t started, uint64_t parent,
                          const char *command);
void holder_release(struct holder *holder);

/* What is kept of those that are over. */
void ended_remember(struct pool *pool, const struct ended *ended);
const struct ended *ended_find(const struct pool *pool, uint64_t id);

/* Somebody who is to be told, perhaps when `asked` would be granted, which gets a user. NULL: no
 * memory, or the connection or its user has too many (BERTH_ERROR_LIMIT). */
struct watcher *watcher_new(struct connection *connection, uint64_t number, struct asked *asked,
                            struct berth_error *error);
void watcher_free(struct watcher *watcher);

#endif
