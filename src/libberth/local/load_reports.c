/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads that are reported or sampled, and advice based on them.
 */
#include "base/error.h"
#include "libberth/local/local_claim.h"
#include "libberth/local/local_pool.h"

static struct figure figure_of(int64_t value, int64_t now)
{
    struct figure unknown = {0};

    return value == BERTH_UNKNOWN ? unknown : load_figure_sampled(value, now);
}

/* Figures out of range count as unknown. */
static struct load load_of(const struct berth_load *load, int64_t now)
{
    struct load figures = {
        .memory_free = figure_of(load->memory_free, now),
        .utilization = figure_of(load->utilization, now),
    };

    if (load->memory_free < 0)
        figures.memory_free.known = false;
    if (load->utilization < 0 || load->utilization > 1000)
        figures.utilization.known = false;
    return figures;
}

static int enter_for_slot(struct berth_pool *pool, size_t slot, struct berth_error *error)
{
    int code = local_pool_enter(pool, error);

    if (code < 0)
        return code;
    code = local_pool_check_slot(pool, slot, error);
    if (code < 0)
        lock_give(&pool->lock);
    return code;
}

int berth_report_work(struct berth_pool *pool, size_t slot, uint64_t queued, uint64_t active,
                      struct berth_error *error)
{
    int code = enter_for_slot(pool, slot, error);

    if (code < 0)
        return code;
    engine_set_work(pool->engine, (uint32_t)slot, queued, active);
    local_pool_leave(pool);
    return 0;
}

int berth_report_load(struct berth_pool *pool, size_t slot, const struct berth_load *load,
                      struct berth_error *error)
{
    struct load figures = load_of(load, clock_read(CLOCK_REALTIME));
    int code;

    if (load->memory_free != BERTH_UNKNOWN && load->memory_free < 0)
        return error_set(error, BERTH_ERROR_RANGE,
                         "memory_free: expected 0 bytes or more, got %lld",
                         (long long)load->memory_free);
    if (load->utilization != BERTH_UNKNOWN && (load->utilization < 0 || load->utilization > 1000))
        return error_set(error, BERTH_ERROR_RANGE,
                         "utilization: expected 0 to 1000 thousandths, got %lld",
                         (long long)load->utilization);
    code = enter_for_slot(pool, slot, error);
    if (code < 0)
        return code;
    engine_set_load(pool->engine, (uint32_t)slot, &figures);
    local_pool_leave(pool);
    return 0;
}

void timer_thread_sample(struct berth_pool *pool)
{
    for (size_t slot = 0; slot < pool->capacity; slot++) {
        struct berth_load load = {.memory_free = BERTH_UNKNOWN, .utilization = BERTH_UNKNOWN};
        struct load figures;

        pool->sample(pool->sample_data, slot, &load);
        figures = load_of(&load, clock_read(CLOCK_REALTIME));
        lock_take(&pool->lock);
        engine_set_load(pool->engine, (uint32_t)slot, &figures);
        local_pool_leave(pool);
    }
}

int berth_set_weight(struct berth_pool *pool, size_t slot, uint32_t weight,
                     struct berth_error *error)
{
    int code;

    if (weight == 0)
        return error_set(error, BERTH_ERROR_RANGE, "weight: expected 1 or more, got 0");
    code = enter_for_slot(pool, slot, error);
    if (code < 0)
        return code;
    engine_set_weight(pool->engine, (uint32_t)slot, weight);
    local_pool_leave(pool);
    return 0;
}

int berth_pick(struct berth_pool *pool, const struct berth_request *request, size_t *ret_slots,
               size_t capacity, struct berth_error *error)
{
    struct engine_request *compiled;
    int count;
    int code = local_pool_enter(pool, error);

    if (code < 0)
        return code;
    code = local_pool_find_compiled(pool, request, &compiled, error);
    if (code < 0) {
        local_pool_leave(pool);
        return code;
    }
    if (local_request_core_of(pool, request)->has_limit)
        local_pool_advance(pool, clock_now());
    count = engine_pick(pool->engine, compiled, pool->slots, pool->capacity, error);
    for (int i = 0; i < count && (size_t)i < capacity; i++)
        ret_slots[i] = pool->slots[i];
    local_pool_leave(pool);
    return count == 0 ? local_claim_refuse(BERTH_ERROR_BUSY, 0, error) : count;
}
