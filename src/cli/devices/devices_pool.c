/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/devices/devices_pool.h"

#include <limits.h>
#include <stdlib.h>

#include "base/system/clock.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"

/* The maximum number of ancestors to search: more than any real process has. */
enum { ANCESTORS_MAX = 256 };

/* After a timeout, the pool is not queried again for this long. */
static const int64_t silence = 10 * DURATION_SECOND;

static void close_session(struct devices_pool *pool)
{
    if (!pool->is_connected)
        return;
    session_close(&pool->session);
    pool_address_finish(&pool->address);
    pool->is_connected = false;
}

static void forget_view(struct devices_pool *pool)
{
    if (pool->is_known)
        pool_view_finish(&pool->view);
    pool->view = (struct pool_view){0};
    vector_finish(&pool->holders);
    pool->is_known = false;
}

void devices_pool_finish(struct devices_pool *pool)
{
    forget_view(pool);
    close_session(pool);
}

static bool connect_pool(struct devices_pool *pool)
{
    if (pool->is_connected)
        return true;
    if (pool_address_find(NULL, &pool->address, NULL) < 0)
        return false;
    if (session_open_with_timeout(&pool->session, &pool->address, DIAL_ONLY, DEVICES_POOL_TIMEOUT,
                                  NULL) < 0) {
        pool_address_finish(&pool->address);
        return false;
    }
    pool->is_connected = true;
    return true;
}

static int compare_holders(const void *one, const void *other)
{
    const struct devices_pool_holder *a = one;
    const struct devices_pool_holder *b = other;

    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return (a->lease > b->lease) - (a->lease < b->lease);
}

int devices_pool_index(struct devices_pool *pool)
{
    const struct lease_info *lease;

    vector_for_each (lease, &pool->view.snapshot.leases) {
        struct devices_pool_holder *holder;

        if (lease->pid <= 0)
            continue;
        holder = vector_append(&pool->holders);
        if (holder == NULL)
            return BERTH_ERROR_MEMORY;
        *holder = (struct devices_pool_holder){.pid = lease->pid, .lease = lease->id};
    }
    if (pool->holders.count > 0)
        qsort(pool->holders.items, pool->holders.count, sizeof(*pool->holders.items),
              compare_holders);
    return 0;
}

/* Fetches the view. Fails if the pool has an inventory: its devices are others, even with equal
 * ids. */
static bool fetch_view(struct devices_pool *pool)
{
    if (pool_view_fetch_within(&pool->session, DEVICES_POOL_TIMEOUT, &pool->view, NULL) < 0)
        return false;
    pool->is_known = true;
    return pool->view.about.inventory == NULL && devices_pool_index(pool) == 0;
}

void devices_pool_query(struct devices_pool *pool)
{
    int64_t began = clock_now();

    forget_view(pool);
    if (began < pool->silent_until)
        return;
    if (connect_pool(pool) && fetch_view(pool))
        return;
    forget_view(pool);
    close_session(pool);
    if (clock_now() - began >= DEVICES_POOL_TIMEOUT / 2)
        pool->silent_until = clock_now() + silence;
}

struct optional_number devices_pool_slot(const struct devices_pool *pool, struct device_id id)
{
    const struct slot_info *slot;

    vector_for_each (slot, &pool->view.snapshot.slots) {
        if (device_id_equals(slot->device->id, id))
            return optional_number_of((uint64_t)(slot - pool->view.snapshot.slots.items));
    }
    return (struct optional_number){0};
}

const struct device *devices_pool_device(const struct devices_pool *pool, struct device_id id)
{
    struct optional_number slot = devices_pool_slot(pool, id);

    return slot.known ? pool->view.snapshot.slots.items[slot.value].device : NULL;
}

/* Returns the youngest lease that the process itself holds; 0: none. */
static uint64_t find_lease(const struct devices_pool *pool, pid_t pid)
{
    size_t low = 0;
    size_t high = pool->holders.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (pool->holders.items[middle].pid <= pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && pool->holders.items[low - 1].pid == pid ? pool->holders.items[low - 1].lease
                                                              : 0;
}

uint64_t devices_pool_lease(const struct devices_pool *pool, uint64_t pid)
{
    pid_t ancestor = pid <= INT_MAX ? (pid_t)pid : 0;
    uint64_t lease = 0;

    if (pool->holders.count == 0)
        return 0;
    for (int i = 0; lease == 0 && ancestor > 0 && i < ANCESTORS_MAX; i++) {
        lease = find_lease(pool, ancestor);
        ancestor = process_stat_parent(ancestor);
    }
    return lease;
}
