/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/mps_search.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/clients/quota.h"
#include "daemon/leases/pool.h"
#include "daemon/mps/mps.h"
#include "daemon/processes/leftovers.h"
#include "reader/reader_messages.h"

/* The open search and question about one slot's control daemon. */
struct mps_search {
    struct pool *pool;
    uint32_t slot;
    uint32_t account;              /* the user that pays for the search */
    struct leftovers *leftovers;   /* NULL: no search */
    struct reader_query *identity; /* NULL: no question */
};

int mps_search_init(struct pool *pool, struct berth_error *error)
{
    uint32_t count = (uint32_t)engine_slots_max(pool->engine);

    pool->mps_searches = calloc(count, sizeof(*pool->mps_searches));
    if (pool->mps_searches == NULL)
        return error_set_memory(error);
    for (uint32_t slot = 0; slot < count; slot++)
        pool->mps_searches[slot] = (struct mps_search){.pool = pool, .slot = slot};
    return 0;
}

void mps_search_finish(struct pool *pool)
{
    free(pool->mps_searches);
    pool->mps_searches = NULL;
}

/* ---- Its processes ---- */

static void report_found(void *context, bool is_gone, struct optional_number exit_code)
{
    const struct mps_search *search = context;

    (void)exit_code;
    mps_found(search->pool->mps, search->slot, is_gone && leftovers_count(search->leftovers) == 0);
}

static void report_gone(void *context)
{
    const struct mps_search *search = context;

    /* The next control daemon must not start while a process of this one runs. */
    if (leftovers_count(search->leftovers) == 0)
        mps_found(search->pool->mps, search->slot, true);
}

/* Charges the control daemon's user, which may have no connection and no lease any more. */
static void charge_user(void *context, int64_t time)
{
    const struct mps_search *search = context;
    struct quota *user = NULL;

    if (quota_open(&search->pool->clients, search->account, &user) < 0 || user == NULL)
        return;
    quota_charge_time(user, time);
    quota_close(user);
}

bool mps_search_begin(void *context, uint32_t slot, uint32_t uid, pid_t root)
{
    struct pool *pool = context;
    struct mps_search *search = &pool->mps_searches[slot];
    uint64_t mark = mps_mark(slot);

    leftovers_free(search->leftovers);
    search->account = accounts_find(&pool->accounts, uid);
    search->leftovers = leftovers_new(
        &(struct leftovers_settings){
            .loop = &pool->loop,
            .readers = pool->readers,
            .spared = &pool->spared,
            .socket = pool->settings.socket,
            .uid = uid,
            .account = search->account,
            .leases = &(struct id_list){.items = &mark, .count = 1, .capacity = 1},
            .root = root,
        },
        &(struct leftovers_events){
            .looked = report_found,
            .gone = report_gone,
            .spent = charge_user,
            .context = search,
        });
    if (search->leftovers != NULL)
        leftovers_look(search->leftovers, false);
    return search->leftovers != NULL;
}

void mps_search_signal(void *context, uint32_t slot, int number)
{
    const struct pool *pool = context;

    leftovers_signal(pool->mps_searches[slot].leftovers, number);
}

void mps_search_forget(void *context, uint32_t slot)
{
    const struct pool *pool = context;
    struct mps_search *search = &pool->mps_searches[slot];

    leftovers_free(search->leftovers);
    search->leftovers = NULL;
    reader_pool_cancel(search->identity);
    search->identity = NULL;
}

void mps_search_each(const struct pool *pool, uint32_t slot,
                     void (*call)(void *context, const struct leftover_process *process),
                     void *context)
{
    if (pool->mps_searches[slot].leftovers != NULL)
        leftovers_each(pool->mps_searches[slot].leftovers, call, context);
}

/* ---- When its process started ---- */

static void take_identity(void *context, struct reader_answer *answer)
{
    struct mps_search *search = context;
    const struct reader_process *found =
        answer == NULL || answer->processes.count == 0 ? NULL : &answer->processes.items[0];
    uint64_t tick = (uint64_t)DURATION_SECOND / (uint64_t)sysconf(_SC_CLK_TCK);

    search->identity = NULL;
    if (found == NULL || found->state == READER_STALLED)
        return;
    mps_identified(search->pool->mps, search->slot,
                   found->state == READER_FOUND ? found->started / tick : 0);
}

void mps_search_identify(void *context, uint32_t slot, uint32_t uid, pid_t pid)
{
    struct pool *pool = context;
    struct mps_search *search = &pool->mps_searches[slot];
    struct reader_request request = {.question = READER_DESCRIBE, .identity_only = true};
    uint32_t *place = vector_append(&request.pids);

    if (place == NULL)
        return;
    *place = (uint32_t)pid;
    reader_pool_cancel(search->identity);
    search->identity = reader_pool_ask(pool->readers, accounts_find(&pool->accounts, uid), &request,
                                       take_identity, search);
}
