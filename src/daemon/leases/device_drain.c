/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/device_drain.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/journal/journal_records.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/pool.h"

int device_drain_init(struct pool *pool, struct berth_error *error)
{
    pool->drains = calloc(engine_slots_max(pool->engine), sizeof(*pool->drains));
    return pool->drains == NULL ? error_set_memory(error) : 0;
}

void device_drain_finish(struct pool *pool)
{
    for (size_t slot = 0; pool->drains != NULL && slot < engine_slots_max(pool->engine); slot++)
        free(pool->drains[slot].reason);
    free(pool->drains);
    pool->drains = NULL;
}

const struct device_drain *device_drain_of(const struct pool *pool, uint32_t slot)
{
    return &pool->drains[slot];
}

static void log_drain(struct pool *pool, uint32_t slot, const char *what)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    const struct device_drain *drain = &pool->drains[slot];

    log_begin(&pool->log, pool_clock_now(&pool->clock), what);
    device_id_append(device->id, log_value(&pool->log, "device"));
    if (drain->uid.known)
        log_number(&pool->log, "uid", drain->uid.value);
    if (drain->reason != NULL)
        text_append(log_value(&pool->log, "reason"), log_quote(drain->reason).text);
    log_end(&pool->log);
}

int device_drain_set(struct pool *pool, uint32_t slot, const char *reason,
                     struct optional_number uid, struct berth_error *error)
{
    struct device_drain *drain = &pool->drains[slot];
    char *copy = reason == NULL ? NULL : strdup(reason);

    if (reason != NULL && copy == NULL)
        return error_set_memory(error);
    free(drain->reason);
    *drain =
        (struct device_drain){.reason = copy, .uid = uid, .time = pool_clock_now(&pool->clock)};
    log_drain(pool, slot, "drained");
    journal_write_drain(pool, slot);
    engine_block(pool->engine, slot, BLOCK_DRAINED);
    return 0;
}

void device_drain_clear(struct pool *pool, uint32_t slot)
{
    struct device_drain *drain = &pool->drains[slot];

    if (drain->time == 0)
        return;
    free(drain->reason);
    *drain = (struct device_drain){0};
    log_drain(pool, slot, "undrained");
    journal_write_drain(pool, slot);
    engine_unblock(pool->engine, slot, BLOCK_DRAINED);
}

void device_drain_restore(struct pool *pool, struct kept_drain *kept)
{
    struct device_drain *drain;

    if (kept->slot >= engine_slots_max(pool->engine))
        return;
    drain = &pool->drains[kept->slot];
    free(drain->reason);
    *drain = (struct device_drain){.reason = kept->reason, .uid = kept->uid, .time = kept->time};
    kept->reason = NULL;
}

void device_drain_restored(struct pool *pool, bool other_devices)
{
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++) {
        struct device_drain *drain = &pool->drains[slot];

        if (other_devices) {
            free(drain->reason);
            *drain = (struct device_drain){0};
        }
        if (drain->time != 0)
            engine_block(pool->engine, slot, BLOCK_DRAINED);
        else
            engine_unblock(pool->engine, slot, BLOCK_DRAINED);
    }
}
