/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/inner_leases.h"

#include <berth/error.h>

#include "daemon/leases/job.h"
#include "daemon/leases/pool.h"
#include "daemon/processes/leftovers.h"

int inner_leases_collect(const struct pool *pool, const struct job *job, struct id_list *ret_leases)
{
    uint64_t *id = vector_append(ret_leases);

    if (id == NULL)
        return BERTH_ERROR_MEMORY;
    *id = job->by_id.id;
    if (pool->inner_count == 0)
        return 0;
    /* Inner leases are younger than outer ones, so one pass finds all. */
    list_for_each (link, &pool->jobs) {
        const struct job *other = container_of(link, struct job, in_pool);

        for (size_t i = 0; other->holder->parent != 0 && i < ret_leases->count; i++) {
            if (ret_leases->items[i] != other->holder->parent)
                continue;
            id = vector_append(ret_leases);
            if (id == NULL)
                return BERTH_ERROR_MEMORY;
            *id = other->by_id.id;
            break;
        }
    }
    return 0;
}

void inner_leases_cancel_claims(struct pool *pool, const struct job *job)
{
    struct id_list leases = {0};

    if (pool->inner_count > 0 && inner_leases_collect(pool, job, &leases) == 0) {
        list_for_each (link, &pool->jobs) {
            const struct job *other = container_of(link, struct job, in_pool);

            for (size_t i = 0; other->by_lease.id == 0 && i < leases.count; i++) {
                if (leases.items[i] == other->holder->parent)
                    engine_cancel(pool->engine, other->by_id.id, NULL);
            }
        }
    }
    vector_finish(&leases);
}
