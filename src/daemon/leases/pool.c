/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/pool.h"

#include "base/count.h"
#include "base/error.h"
#include "daemon/core/runner.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/lease_warnings.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/leases/mps_events.h"
#include "daemon/leases/notify_program.h"
#include "daemon/leases/pool_news.h"
#include "daemon/leases/prolog_epilog.h"
#include "daemon/leases/reader_events.h"
#include "daemon/leases/squatter_watch.h"

static int init_runner(struct pool *pool, struct berth_error *error)
{
    pool->runner = runner_create(&pool->loop);
    return pool->runner == NULL ? error_set_memory(error) : 0;
}

static void finish_runner(struct pool *pool)
{
    runner_destroy(pool->runner);
    pool->runner = NULL;
}

/* The parts are finished in reverse order. Jobs come first, because they refer to all other parts.
 * Control daemons of MPS come before the readers, because they cancel their questions. */
static const struct pool_part parts[] = {
    {pool_news_init, pool_news_finish},
    {device_drain_init, device_drain_finish},
    {handover_init, handover_finish},
    {squatter_watch_init, squatter_watch_finish},
    {notify_program_init, notify_program_finish},
    {init_runner, finish_runner},
    {prolog_epilog_init, prolog_epilog_finish},
    {lease_warnings_init, lease_warnings_finish},
    {reader_events_init, reader_events_finish},
    {lost_leases_init, lost_leases_finish},
    {mps_events_init, mps_events_finish},
    {job_init_pool, job_finish_pool},
};

int pool_init_parts(struct pool *pool, const struct pool_part *part, size_t count,
                    size_t *ret_count, struct berth_error *error)
{
    int code = 0;

    for (*ret_count = 0; *ret_count < count && code == 0; ++*ret_count) {
        if (part[*ret_count].init != NULL)
            code = part[*ret_count].init(pool, error);
    }
    return code;
}

void pool_finish_parts(struct pool *pool, const struct pool_part *part, size_t count)
{
    while (count > 0) {
        if (part[--count].finish != NULL)
            part[count].finish(pool);
    }
}

int pool_init(struct pool *pool, struct berth_error *error)
{
    return pool_init_parts(pool, parts, COUNT(parts), &pool->part_count, error);
}

void pool_finish(struct pool *pool)
{
    pool_finish_parts(pool, parts, pool->part_count);
    pool->part_count = 0;
}
