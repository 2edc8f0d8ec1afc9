/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries: the devices of a pool and its leases.
 */
#include "libberth/local/local_query.h"

#include <stdio.h>

#include "base/error.h"
#include "libberth/local/local_pool.h"

/* Casts the const away, because queries take the lock, too. */
static struct berth_pool *writable_pool(const struct berth_pool *pool)
{
    return (struct berth_pool *)pool;
}

static const struct device *device_of(const struct berth_pool *pool, size_t slot)
{
    return &engine_machine(pool->engine)->devices.items[slot];
}

size_t berth_pool_capacity(const struct berth_pool *pool)
{
    return pool->capacity;
}

size_t berth_pool_pending(const struct berth_pool *pool)
{
    struct berth_pool *self = writable_pool(pool);
    size_t pending;

    if (local_pool_enter(self, NULL) < 0)
        return 0;
    pending = engine_pending(self->engine);
    lock_give(&self->lock);
    return pending;
}

int berth_pool_device(const struct berth_pool *pool, size_t slot, struct berth_device *ret_device,
                      struct berth_error *error)
{
    const struct device *device;
    int code = fork_happened(pool->generation) ? fork_refuse(error)
                                               : local_pool_check_slot(pool, slot, error);

    if (code < 0)
        return code;
    /* These facts do not change while the pool is open. */
    device = device_of(pool, slot);
    *ret_device = (struct berth_device){
        .vendor = (enum berth_vendor)device->id.vendor,
        .index = device->id.index,
        .mig = device->id.mig,
        .name = device->name,
        .uuid = device->uuid,
        .memory = device->memory_total.known ? (int64_t)device->memory_total.value : BERTH_UNKNOWN,
        .cap_major = device->cap.known ? device->cap.major : 0,
        .cap_minor = device->cap.known ? device->cap.minor : 0,
    };
    return 0;
}

static int64_t figure_or_unknown(const struct figure *figure)
{
    return figure->known ? figure->value : BERTH_UNKNOWN;
}

static struct berth_device_state state_of(const struct berth_pool *pool, size_t slot)
{
    const struct device *device = device_of(pool, slot);
    struct slot_view view;
    struct berth_device_state state = {
        .old = device->old,
        .asleep = device->asleep,
        .sampled_at = BERTH_UNKNOWN,
        .memory_free = figure_or_unknown(&device->load.memory_free),
        .utilization = figure_or_unknown(&device->load.utilization),
        .temperature = figure_or_unknown(&device->load.temperature),
        .power = figure_or_unknown(&device->load.power),
    };

    engine_get_slot(pool->engine, (uint32_t)slot, &view);
    state.present = view.present;
    if (device->health == HEALTH_OK || device->health == HEALTH_SICK)
        state.health = (enum berth_health)device->health;
    load_sampled_at(&device->load, &state.sampled_at);
    if (device->health == HEALTH_SICK && device->health_reason != NULL)
        snprintf(state.reason, sizeof(state.reason), "%s", device->health_reason);
    return state;
}

int berth_pool_device_state(const struct berth_pool *pool, size_t slot,
                            struct berth_device_state *ret_state, struct berth_error *error)
{
    struct berth_pool *self = writable_pool(pool);
    struct berth_device_state state;
    size_t size = ret_state->size;
    int code;

    if (size < sizeof(size))
        return error_set(error, BERTH_ERROR_INVALID,
                         "state: size: expected the struct's size in bytes, got %zu", size);
    code = local_pool_enter(self, error);
    if (code < 0)
        return code;
    code = local_pool_check_slot(self, slot, error);
    if (code == 0)
        state = state_of(self, slot);
    lock_give(&self->lock);
    if (code < 0)
        return code;
    state.size = size;
    local_write_answer(ret_state, size, &state, sizeof(state));
    return 0;
}

void local_query_lease_device(const struct berth_pool *pool, const struct lease_view *view,
                              size_t number, struct berth_lease_device *ret_device)
{
    size_t slot = view->slots[number];
    const struct device *device = device_of(pool, slot);

    *ret_device = (struct berth_lease_device){
        .slot = slot,
        .vendor = (enum berth_vendor)device->id.vendor,
        .index = device->id.index,
        .mig = device->id.mig,
        .name = device->name,
        .uuid = device->uuid,
        .share = view->share,
        .memory = view->memory.known ? (int64_t)view->memory.value : BERTH_UNKNOWN,
    };
}

int berth_lease_devices(const struct berth_pool *pool, struct berth_lease lease,
                        struct berth_lease_device *ret_devices, size_t capacity,
                        struct berth_error *error)
{
    struct berth_pool *self = writable_pool(pool);
    struct lease_view view;
    int code = local_pool_enter(self, error);

    if (code < 0)
        return code;
    if (lease.pool != self->serial || !engine_get_lease(self->engine, lease.id, &view)) {
        lock_give(&self->lock);
        return local_pool_refuse_lease(lease.id, error);
    }
    for (size_t i = 0; i < view.slot_count && i < capacity; i++)
        local_query_lease_device(self, &view, i, &ret_devices[i]);
    code = (int)view.slot_count;
    lock_give(&self->lock);
    return code;
}

void local_query_describe_slots(const struct berth_pool *pool, struct berth_slot *ret_slots)
{
    for (size_t slot = 0; slot < pool->capacity; slot++) {
        const struct device *device = device_of(pool, slot);

        ret_slots[slot] = (struct berth_slot){
            .slot = slot,
            .vendor = (enum berth_vendor)device->id.vendor,
            .index = device->id.index,
            .mig = device->id.mig,
            .name = device->name,
        };
    }
}

int berth_snapshot_leases(const struct berth_pool *pool, struct berth_slot *ret_slots,
                          size_t capacity)
{
    struct berth_pool *self = writable_pool(pool);
    size_t count = self->capacity < capacity ? self->capacity : capacity;
    int code = local_pool_enter(self, NULL);

    if (code < 0)
        return code;
    for (size_t slot = 0; slot < count; slot++) {
        struct slot_view view;

        engine_get_slot(self->engine, (uint32_t)slot, &view);
        ret_slots[slot] = self->described[slot];
        ret_slots[slot].leased = view.taken;
        ret_slots[slot].tenants = view.tenants;
        ret_slots[slot].lease = view.lease;
    }
    lock_give(&self->lock);
    return (int)self->capacity;
}
