/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a pool of readers, for reader_pool.c (users and their queries) and reader_slot.c
 * (readers).
 */
#ifndef DAEMON_PROCESSES_READER_POOL_INTERNAL_H
#define DAEMON_PROCESSES_READER_POOL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id_map.h"
#include "base/list.h"
#include "daemon/core/loop.h"
#include "daemon/processes/reader_pool.h"
#include "daemon/processes/reader_progress.h"
#include "daemon/processes/stalled_processes.h"
#include "reader/reader.h"

/* After this many failures in a row, queries get no answer. */
enum { READER_POOL_FAILURES_MAX = 3 };

/* A user with queries or a recent stall. */
struct reader_user {
    struct id_link by_uid;
    struct list_link in_pool; /* the users take turns in this order */
    size_t query_count;       /* that are not answered yet */
    struct list queries;      /* those that wait for a reader */
    bool is_out;              /* a reader has one of its queries */
    int64_t penalty_until;
};

struct reader_query {
    struct reader_pool *pool;
    struct reader_user *user;
    struct list_link in_user; /* while it waits */
    struct reader_slot *slot; /* the reader that works on it; NULL: none */
    struct reader_request request;
    void (*answered)(void *context, struct reader_answer *answer);
    void *context;
    pid_t suspect; /* the process that stalled one reader; 0: none did */
    int64_t stall_factor;
    unsigned losses; /* readers that were lost while they worked on it */
};

/* One reader. */
struct reader_slot {
    struct reader_pool *pool;
    struct reader reader;
    struct watch watch;
    struct timer timer; /* open: looks whether it makes progress; otherwise: starts it */
    bool is_open;
    struct reader_query *query;      /* the query that it works on; NULL: it is free */
    struct reader_progress progress; /* with the query */
    unsigned failures;
};

struct reader_pool {
    struct loop *loop;
    struct reader_pool_events events;
    struct reader_slot slots[READER_POOL_READERS];
    struct id_map by_uid;
    struct list users;
    struct stalled_processes stalled;
    struct timer hopeless; /* fires when queries must be answered without a reader */
    int64_t waited;        /* how long the queries that are over have waited for their readers */
    bool has_failed;
};

/* Sends queries to the free readers, and takes readers back from slow users. */
void reader_pool_serve(struct reader_pool *pool);

/* Answers the query and frees it. NULL: no reader could answer. */
void reader_pool_answer(struct reader_query *query, struct reader_answer *answer);

/* Gives the query of a reader that is gone back to its user, as the next one. */
void reader_pool_put_back(struct reader_slot *slot);

/* Marks the user as slow: reader_pool_is_slow() is true for a while. */
void reader_pool_penalize(struct reader_pool *pool, struct reader_user *user);
bool reader_pool_is_penalized(const struct reader_pool *pool, const struct reader_user *user);

#endif
