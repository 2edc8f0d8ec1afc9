/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements berth/context.h: maps the program's handles to sets of contexts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "libberth/local/local_pool.h"

/* The context that this thread made current last. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct berth_context current;

/* ---- Making sets ---- */

static int check_options(const struct berth_context_options *options, struct berth_error *error)
{
    const unsigned scheduling =
        BERTH_CUDA_SCHED_SPIN | BERTH_CUDA_SCHED_YIELD | BERTH_CUDA_SCHED_BLOCKING_SYNC;
    const unsigned known = scheduling | BERTH_CUDA_MAP_HOST | BERTH_CUDA_LMEM_RESIZE_TO_MAX;
    unsigned ways = options->cuda_flags & scheduling;

    if ((unsigned)options->api > BERTH_API_OPENCL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "options: api: expected one of enum berth_api, got %d", (int)options->api);
    if ((options->cuda_flags & ~known) != 0 || (ways & (ways - 1)) != 0)
        return error_set(
            error, BERTH_ERROR_INVALID,
            "options: cuda_flags: expected flags of enum berth_cuda_flags, at most one SCHED "
            "flag, got %#x",
            options->cuda_flags);
    return 0;
}

static int read_order(struct berth_pool *pool, const struct berth_context_options *given,
                      struct context_order *order, struct berth_error *error)
{
    int code;

    if (fork_happened(pool->generation))
        return fork_refuse(error);
    code = local_read_options(&order->options, sizeof(order->options), given,
                              given == NULL ? 0 : given->size, error);
    return code < 0 ? code : check_options(&order->options, error);
}

/* Lists the slots whose devices are present and can be leased. Returns their number. */
static size_t list_slots(struct berth_pool *pool, size_t *slots)
{
    const struct device_list *devices = &engine_machine(pool->engine)->devices;
    size_t count = 0;

    lock_take(&pool->lock);
    for (size_t slot = 0; slot < pool->capacity; slot++) {
        struct slot_view view;

        engine_get_slot(pool->engine, (uint32_t)slot, &view);
        if (view.present && !devices->items[slot].partitioned)
            slots[count++] = slot;
    }
    lock_give(&pool->lock);
    return count;
}

int berth_contexts_create(struct berth_pool *pool, const struct berth_context_options *options,
                          struct berth_context_set *ret_set, struct berth_error *error)
{
    struct context_order order = {0};
    int code = read_order(pool, options, &order, error);
    size_t *slots;

    if (code < 0)
        return code;
    slots = calloc(pool->capacity + 1, sizeof(*slots));
    if (slots == NULL)
        return error_set_memory(error);
    order.slots = slots;
    order.count = list_slots(pool, slots);
    code = order.count == 0 ? error_set(error, BERTH_ERROR_NO_DEVICE,
                                        "cannot create contexts: this pool has no devices")
                            : context_sets_make(pool, &order, ret_set, error);
    free(slots);
    return code;
}

static int check_slots(const struct berth_pool *pool, const size_t *slots, size_t count,
                       struct berth_error *error)
{
    int code = 0;

    if (slots == NULL || count == 0)
        return error_set(error, BERTH_ERROR_INVALID,
                         "slots: expected at least one device, got none");
    for (size_t i = 0; i < count && code == 0; i++) {
        code = local_pool_check_slot(pool, slots[i], error);
        for (size_t earlier = 0; earlier < i && code == 0; earlier++) {
            if (slots[earlier] == slots[i])
                code = error_set(error, BERTH_ERROR_INVALID, "slots: slot %zu is listed twice",
                                 slots[i]);
        }
    }
    return code;
}

int berth_contexts_create_on(struct berth_pool *pool, const size_t *slots, size_t count,
                             const struct berth_context_options *options,
                             struct berth_context_set *ret_set, struct berth_error *error)
{
    struct context_order order = {.slots = slots, .count = count};
    int code = read_order(pool, options, &order, error);

    if (code == 0)
        code = check_slots(pool, slots, count, error);
    return code < 0 ? code : context_sets_make(pool, &order, ret_set, error);
}

int berth_contexts_of_lease(struct berth_pool *pool, struct berth_lease lease,
                            const struct berth_context_options *options,
                            struct berth_context_set *ret_set, struct berth_error *error)
{
    struct context_order order = {.lease = lease.id};
    int code = read_order(pool, options, &order, error);

    if (code < 0)
        return code;
    if (lease.pool != pool->serial || lease.id == 0)
        return local_pool_refuse_lease(lease.id, error);
    return context_sets_of_lease(pool, &order, ret_set, error);
}

int berth_contexts_release(struct berth_pool *pool, struct berth_context_set set,
                           struct berth_error *error)
{
    return context_sets_end(pool, set, error);
}

/* ---- Sets ---- */

static struct berth_context handle_of(struct berth_context_set set, struct context_ref place)
{
    return (struct berth_context){
        .set = set.id,
        .pool = set.pool,
        .position = place.position,
        .generation = place.generation,
    };
}

/* Ends a call. On success, returns a handle to the context. */
static int leave_set(struct kept_set *kept, struct berth_context_set set, struct context_ref place,
                     int code, struct berth_context *ret_context)
{
    context_sets_leave(kept);
    if (code == 0)
        *ret_context = handle_of(set, place);
    return code;
}

int berth_contexts_count(struct berth_pool *pool, struct berth_context_set set,
                         struct berth_error *error)
{
    struct kept_set *kept;
    int code = context_sets_enter(pool, set, &kept, error);

    if (code < 0)
        return code;
    code = (int)kept->count;
    context_sets_leave(kept);
    return code;
}

int berth_contexts_at(struct berth_pool *pool, struct berth_context_set set, size_t position,
                      struct berth_context *ret_context, struct berth_error *error)
{
    struct context_ref place = {0};
    struct kept_set *kept;
    int code = context_sets_enter(pool, set, &kept, error);

    if (code < 0)
        return code;
    code = context_set_at(kept->set, position, &place, error);
    return leave_set(kept, set, place, code, ret_context);
}

int berth_contexts_find(struct berth_pool *pool, struct berth_context_set set, const char *id,
                        struct berth_context *ret_context, struct berth_error *error)
{
    struct context_ref place = {0};
    struct device_id wanted;
    struct kept_set *kept;
    int code = context_sets_enter(pool, set, &kept, error);

    if (code < 0)
        return code;
    code = device_id_parse(id, &wanted, error);
    if (code == 0)
        code = context_set_find(kept->set, wanted, &place, error);
    return leave_set(kept, set, place, code, ret_context);
}

int berth_contexts_list(struct berth_pool *pool, struct berth_context_set set,
                        struct berth_context *ret_contexts, size_t capacity,
                        struct berth_error *error)
{
    struct kept_set *kept;
    size_t found = 0;
    int code = context_sets_enter(pool, set, &kept, error);

    if (code < 0)
        return code;
    for (size_t i = 0; i < kept->count; i++) {
        struct context_ref place;

        if (context_set_at(kept->set, i, &place, NULL) < 0)
            continue;
        if (found < capacity)
            ret_contexts[found] = handle_of(set, place);
        found++;
    }
    context_sets_leave(kept);
    return (int)found;
}

int berth_contexts_next(struct berth_pool *pool, struct berth_context_set set,
                        struct berth_context *ret_context, struct berth_error *error)
{
    struct context_ref place = {0};
    struct kept_set *kept;
    int code = context_sets_enter(pool, set, &kept, error);

    if (code < 0)
        return code;
    code = context_set_next(kept->set, &place, error);
    return leave_set(kept, set, place, code, ret_context);
}

int berth_contexts_best(struct berth_pool *pool, struct berth_context_set set, uint64_t bytes,
                        struct berth_context *ret_context, struct berth_error *error)
{
    struct context_ref place = {0};
    struct kept_set *kept;
    int code = context_sets_enter(pool, set, &kept, error);

    if (code < 0)
        return code;
    code = context_set_best(kept->set, bytes, &place, error);
    return leave_set(kept, set, place, code, ret_context);
}

int berth_contexts_describe(struct berth_pool *pool, struct berth_context_set set, char *buffer,
                            size_t size, struct berth_error *error)
{
    struct kept_set *kept;
    struct text line = {0};
    int code = context_sets_enter(pool, set, &kept, error);

    if (code < 0)
        return code;
    context_set_describe(kept->set, &line);
    context_sets_leave(kept);
    if (text_failed(&line)) {
        code = error_set_memory(error);
    } else {
        code = (int)line.length;
        if (size > 0) {
            size_t length = line.length < size ? line.length : size - 1;

            memcpy(buffer, text_string(&line), length);
            buffer[length] = '\0';
        }
    }
    text_finish(&line);
    return code;
}

/* ---- Contexts ---- */

/* Enters a call on the set that a context belongs to. */
static int enter_context(struct berth_pool *pool, struct berth_context context,
                         struct kept_set **ret_kept, struct context_ref *ret_place,
                         struct berth_error *error)
{
    *ret_place = (struct context_ref){context.position, context.generation};
    return context_sets_enter(
        pool, (struct berth_context_set){.id = context.set, .pool = context.pool}, ret_kept, error);
}

int berth_context_info(struct berth_pool *pool, struct berth_context context,
                       struct berth_context_info *ret_info, struct berth_error *error)
{
    struct berth_context_info info;
    struct context_ref place;
    struct kept_set *kept;
    size_t size = ret_info->size;
    int code;

    if (size < sizeof(size))
        return error_set(error, BERTH_ERROR_INVALID,
                         "info: size: expected the struct's size in bytes, got %zu", size);
    code = enter_context(pool, context, &kept, &place, error);
    if (code < 0)
        return code;
    code = context_info(kept->set, place, &info, error);
    if (code == 0)
        info.slot = kept->slots[place.position];
    context_sets_leave(kept);
    if (code < 0)
        return code;
    info.size = size;
    local_write_answer(ret_info, size, &info, sizeof(info));
    return 0;
}

int berth_context_make_current(struct berth_pool *pool, struct berth_context context,
                               struct berth_error *error)
{
    struct context_ref place;
    struct kept_set *kept;
    int code = enter_context(pool, context, &kept, &place, error);

    if (code < 0)
        return code;
    code = context_make_current(kept->set, place, error);
    if (code == 0)
        current = context;
    context_sets_leave(kept);
    return code;
}

int berth_context_current(struct berth_pool *pool, struct berth_context *ret_context,
                          struct berth_error *error)
{
    struct context_ref place;
    struct kept_set *kept;
    int code;

    if (fork_happened(pool->generation))
        return fork_refuse(error);
    if (current.pool != pool->serial)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "this thread has no current context");
    code = enter_context(pool, current, &kept, &place, error);
    if (code < 0)
        return code;
    code = context_check(kept->set, place, error);
    context_sets_leave(kept);
    if (code == 0)
        *ret_context = current;
    return code;
}

int berth_context_report(struct berth_pool *pool, struct berth_context context, int number,
                         enum berth_fault *ret_fault, struct berth_error *error)
{
    struct context_ref place;
    struct kept_set *kept;
    int code = enter_context(pool, context, &kept, &place, error);

    if (code < 0)
        return code;
    code = context_report(kept->set, place, number, ret_fault, error);
    context_sets_leave(kept);
    return code;
}

int berth_context_rebuild(struct berth_pool *pool, struct berth_context context,
                          struct berth_context *ret_context, struct berth_error *error)
{
    struct context_ref place, rebuilt;
    struct kept_set *kept;
    int code = enter_context(pool, context, &kept, &place, error);

    if (code < 0)
        return code;
    code = context_rebuild(kept->set, place, &rebuilt, error);
    context_sets_leave(kept);
    if (code < 0)
        return code;
    *ret_context = context;
    ret_context->generation = rebuilt.generation;
    return 0;
}

int berth_context_release(struct berth_pool *pool, struct berth_context context,
                          struct berth_error *error)
{
    struct context_ref place;
    struct kept_set *kept;
    int code = enter_context(pool, context, &kept, &place, error);

    if (code < 0)
        return code;
    code = context_release(kept->set, place, error);
    context_sets_leave(kept);
    return code;
}
