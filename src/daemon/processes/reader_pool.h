/* SPDX-License-Identifier: Apache-2.0
 *
 * Two berth-readers (reader/reader.h), so that a process that stalls one of them delays only its
 * own user:
 *
 *  - A user has at most one request out at a time, and users take turns.
 *  - A reader that stays in one access to a process for READER_POOL_STALL is replaced. If the next
 *    reader stalls at the same process, the process counts as stalled: it is remembered by its
 *    pidfd and not touched again until it ends.
 *  - After a stall, or a request that has taken READER_POOL_SLOW or READER_POOL_LONG accesses to
 *    processes, the user is slow for READER_POOL_PENALTY: the user's requests never take the last
 *    free reader, and where slow users have all readers, another user gets one of them. Time that
 *    a reader waits for a CPU does not count.
 *  - A user with READER_POOL_STALLED_MAX such processes gets no answers until one of them ends.
 */
#ifndef DAEMON_PROCESSES_READER_POOL_H
#define DAEMON_PROCESSES_READER_POOL_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/quantity.h"
#include "daemon/core/loop.h"
#include "daemon/processes/stalled_processes.h"
#include "reader/reader.h"
#include "reader/reader_messages.h"

enum { READER_POOL_READERS = 2, READER_POOL_STALLED_MAX = 64, READER_POOL_LONG = 5000 };

#define READER_POOL_STALL   (DURATION_SECOND / 50)
#define READER_POOL_SLOW    (DURATION_SECOND / 20)
#define READER_POOL_PENALTY (10 * DURATION_SECOND)

struct reader_pool;
struct reader_query;

/* Callbacks, from the loop. */
struct reader_pool_events {
    /* Executes a reader (reader/reader.h); NULL: as reader_start() does. */
    reader_spawn_function *spawn;
    /* A user's request stalled a reader or takes long: reader_pool_is_slow() has changed. */
    void (*slowed)(void *context);
    /* Returns the user that a uid counts as; NULL: the user whose request touched the process. */
    uint32_t (*find_account)(void *context, uint32_t uid);
    /* A process counts as stalled from now on. */
    void (*stalled)(void *context, const struct stalled_process *process);
    /* The readers cannot be started (`reason`), or work again (NULL). */
    void (*failed)(void *context, const char *reason);
    void *context;
};

/* Creates a pool whose readers start in the next turn of `loop`. Fails with BERTH_ERROR_MEMORY. */
int reader_pool_create(struct loop *loop, const struct reader_pool_events *events,
                       struct reader_pool **ret_pool, struct berth_error *error);

/* Ends the readers, and answers the remaining queries with NULL. NULL is fine. */
void reader_pool_destroy(struct reader_pool *pool);

/* Asks on behalf of the account `uid` (daemon/core/accounts.h), which pays for the request. Takes
 * the request's contents, also on failure. `answered` is called once, from the loop, unless the
 * query is cancelled; `answer` is NULL if the user has too many stalled processes or the readers
 * cannot be started. The callee may take descriptors and texts out of the answer. Returns NULL
 * without memory. */
struct reader_query *reader_pool_ask(struct reader_pool *pool, uint32_t uid,
                                     struct reader_request *request,
                                     void (*answered)(void *context, struct reader_answer *answer),
                                     void *context);

/* Gives up a query that is not answered yet. NULL is fine. */
void reader_pool_cancel(struct reader_query *query);

/* Calls `call` for each stalled process that still runs. */
void reader_pool_each_stalled(const struct reader_pool *pool,
                              void (*call)(void *context, const struct stalled_process *process),
                              void *context);

/* Returns whether a request of this user stalled a reader or took long lately. */
bool reader_pool_is_slow(const struct reader_pool *pool, uint32_t uid);

/* Returns how long all requests together have waited for their readers so far, except the time that
 * the readers waited for a CPU. */
int64_t reader_pool_waited(const struct reader_pool *pool);

#endif
