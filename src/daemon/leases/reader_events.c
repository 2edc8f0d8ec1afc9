/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/reader_events.h"

#include "base/count.h"
#include "base/error.h"
#include "daemon/clients/quota.h"
#include "daemon/core/accounts.h"
#include "daemon/core/log.h"
#include "daemon/leases/late_leftovers.h"
#include "daemon/leases/pool.h"
#include "daemon/processes/reader_pool.h"

static void user_is_slow(void *context)
{
    struct pool *pool = context;

    /* Messages that wait for the user's searches continue. */
    pool->has_looked = true;
}

static uint32_t find_account(void *context, uint32_t uid)
{
    const struct pool *pool = context;

    return accounts_find(&pool->accounts, uid);
}

static void process_has_stalled(void *context, const struct stalled_process *process)
{
    struct pool *pool = context;

    if (!quota_may_log_user(&pool->clients, process->account))
        return;
    log_line(&pool->log, pool_clock_now(&pool->clock), "stalled", "pid=%d uid=%u",
             (int)process->pid, process->account);
}

static void readers_have_failed(void *context, const char *reason)
{
    struct pool *pool = context;

    if (reason == NULL)
        log_line(&pool->log, pool_clock_now(&pool->clock), "reader", "what=back");
    else
        log_line(&pool->log, pool_clock_now(&pool->clock), "reader", "what=lost reason=%s",
                 log_quote(reason).text);
}

static int launch_reader(void *context, int socket, int progress_file, struct berth_error *error)
{
    struct pool *pool = context;
    const int descriptors[] = {socket, progress_file};
    int number = launcher_start(&pool->launcher, LAUNCHER_READER, descriptors, COUNT(descriptors));

    return number == 0 ? 0 : error_set_errno(error, number, "cannot start berth-reader");
}

int reader_events_init(struct pool *pool, struct berth_error *error)
{
    spared_processes_init(&pool->spared, &pool->loop);
    foreign_processes_init(&pool->foreign, &pool->loop);
    late_leftovers_init(pool);
    return reader_pool_create(
        &pool->loop,
        &(struct reader_pool_events){
            .spawn = launcher_is_separate(&pool->launcher) ? launch_reader : NULL,
            .slowed = user_is_slow,
            .find_account = find_account,
            .stalled = process_has_stalled,
            .failed = readers_have_failed,
            .context = pool,
        },
        &pool->readers, error);
}

void reader_events_finish(struct pool *pool)
{
    if (pool->readers == NULL)
        return;
    late_leftovers_finish(pool);
    reader_pool_destroy(pool->readers);
    pool->readers = NULL;
    spared_processes_finish(&pool->spared);
    foreign_processes_finish(&pool->foreign);
}
