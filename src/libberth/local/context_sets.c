/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/context_sets.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "libberth/local/local_pool.h"

void context_sets_init(struct context_sets *sets)
{
    pthread_mutex_init(&sets->lock, NULL);
    pthread_cond_init(&sets->changed, NULL);
    list_init(&sets->sets);
    list_init(&sets->leases);
}

/* ---- Facts about devices, for a set ---- */

static const struct device *device_at(const struct kept_set *kept, size_t position)
{
    return &engine_machine(kept->pool->engine)->devices.items[kept->slots[position]];
}

static bool is_available(void *data, size_t position)
{
    struct kept_set *kept = data;
    struct slot_view view;
    bool is_sick;

    lock_take(&kept->pool->lock);
    engine_get_slot(kept->pool->engine, (uint32_t)kept->slots[position], &view);
    is_sick = device_at(kept, position)->health == HEALTH_SICK;
    lock_give(&kept->pool->lock);
    return view.present && !is_sick;
}

static struct optional_number free_memory(void *data, size_t position)
{
    struct kept_set *kept = data;
    struct figure figure;

    lock_take(&kept->pool->lock);
    figure = device_at(kept, position)->load.memory_free;
    lock_give(&kept->pool->lock);
    return figure.known && figure.value >= 0 ? optional_number_of((uint64_t)figure.value)
                                             : (struct optional_number){0};
}

/* ---- Creating sets ---- */

/* Fills in the facts by which drivers find devices. They do not change while the pool is open, so
 * no lock is needed. */
static void name_targets(const struct kept_set *kept, struct context_target *targets)
{
    for (size_t i = 0; i < kept->count; i++) {
        const struct device *device = device_at(kept, i);

        targets[i] = (struct context_target){
            .id = device->id,
            .uuid = device->uuid,
            .pci = device->pci,
            .is_partition = device->parent != NULL,
            .slot = kept->slots[i],
        };
    }
}

static int create_contexts(struct kept_set *kept, const struct context_order *order,
                           struct context_set **ret_set, struct berth_error *error)
{
    struct context_target *targets = calloc(kept->count, sizeof(*targets));
    struct context_set_config facts = {
        .targets = targets,
        .count = kept->count,
        .api = order->options.api,
        .cuda_flags = order->options.cuda_flags,
        .parts = order->options.stand_in && !kept->pool->is_hardware ? kept->pool->capacity : 0,
        .callbacks = {kept, is_available, free_memory},
    };
    int code;

    if (targets == NULL)
        return error_set_memory(error);
    name_targets(kept, targets);
    code = context_set_create(&facts, ret_set, error);
    free(targets);
    return code;
}

static struct kept_set *kept_new(struct berth_pool *pool, size_t count, struct berth_error *error)
{
    struct kept_set *kept = calloc(1, sizeof(*kept) + count * sizeof(kept->slots[0]));

    if (kept == NULL) {
        error_set_memory(error);
        return NULL;
    }
    kept->pool = pool;
    kept->count = count;
    kept->guests = 1;
    return kept;
}

static void leave_leases(struct kept_set *kept)
{
    if (kept->lease == 0)
        return;
    lock_take(&kept->pool->lock);
    list_remove(&kept->in_leases);
    kept->pool->lease_sets--;
    lock_give(&kept->pool->lock);
}

/* Completes a set that is in the list but not created yet, or removes it. Called without the
 * lock. */
static int create_set(struct kept_set *kept, const struct context_order *order,
                      struct berth_context_set *ret_set, struct berth_error *error)
{
    struct context_sets *sets = &kept->pool->context_sets;
    struct berth_context_set handle = {.id = kept->id, .pool = kept->pool->serial};
    struct context_set *made = NULL;
    int code = create_contexts(kept, order, &made, error);

    pthread_mutex_lock(&sets->lock);
    kept->set = made;
    kept->guests--;
    if (code < 0 && !kept->is_ending) {
        list_remove(&kept->in_sets);
        leave_leases(kept);
        free(kept);
    } else if (code == 0 && kept->is_ending) {
        code = local_pool_refuse_lease(kept->lease, error);
    }
    pthread_cond_broadcast(&sets->changed);
    pthread_mutex_unlock(&sets->lock);
    if (code == 0)
        *ret_set = handle;
    return code;
}

/* Adds the set to the list. Called with the lock of the sets. */
static void add_set(struct context_sets *sets, struct kept_set *kept)
{
    kept->id = ++sets->last;
    list_append(&sets->sets, &kept->in_sets);
}

int context_sets_make(struct berth_pool *pool, const struct context_order *order,
                      struct berth_context_set *ret_set, struct berth_error *error)
{
    struct kept_set *kept = kept_new(pool, order->count, error);

    if (kept == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < order->count; i++)
        kept->slots[i] = order->slots[i];
    pthread_mutex_lock(&pool->context_sets.lock);
    add_set(&pool->context_sets, kept);
    pthread_mutex_unlock(&pool->context_sets.lock);
    return create_set(kept, order, ret_set, error);
}

/* ---- Sets that belong to a lease ---- */

/* Finds the set of a lease. Called with the lock of the sets. */
static struct kept_set *find_lease(const struct context_sets *sets, uint64_t lease)
{
    list_for_each (link, &sets->sets) {
        struct kept_set *kept = container_of(link, struct kept_set, in_sets);

        if (kept->lease == lease)
            return kept;
    }
    return NULL;
}

bool context_sets_has_lease(const struct berth_pool *pool, uint64_t lease)
{
    list_for_each (link, &pool->context_sets.leases) {
        if (container_of(link, struct kept_set, in_leases)->lease == lease)
            return true;
    }
    return false;
}

/* Returns an entry for the set of a held lease; NULL: the lease is not held, or no memory. From now
 * on the lease's release ends the set. Called with the lock of the sets. */
static struct kept_set *add_for_lease(struct berth_pool *pool, uint64_t lease,
                                      struct berth_error *error)
{
    struct kept_set *kept = NULL;
    struct lease_view view;

    lock_take(&pool->lock);
    if (!engine_get_lease(pool->engine, lease, &view)) {
        local_pool_refuse_lease(lease, error);
    } else {
        kept = kept_new(pool, view.slot_count, error);
        if (kept != NULL) {
            kept->lease = lease;
            for (size_t i = 0; i < view.slot_count; i++)
                kept->slots[i] = view.slots[i];
            list_append(&pool->context_sets.leases, &kept->in_leases);
            pool->lease_sets++;
        }
    }
    lock_give(&pool->lock);
    if (kept != NULL)
        add_set(&pool->context_sets, kept);
    return kept;
}

int context_sets_of_lease(struct berth_pool *pool, const struct context_order *order,
                          struct berth_context_set *ret_set, struct berth_error *error)
{
    struct context_sets *sets = &pool->context_sets;
    struct berth_error why = BERTH_ERROR_INIT;
    struct kept_set *kept;

    pthread_mutex_lock(&sets->lock);
    /* A set that is being created or ended will be there or gone soon. */
    while ((kept = find_lease(sets, order->lease)) != NULL &&
           (kept->set == NULL || kept->is_ending))
        pthread_cond_wait(&sets->changed, &sets->lock);
    if (kept != NULL) {
        *ret_set = (struct berth_context_set){.id = kept->id, .pool = pool->serial};
        pthread_mutex_unlock(&sets->lock);
        return 0;
    }
    kept = add_for_lease(pool, order->lease, &why);
    pthread_mutex_unlock(&sets->lock);
    return kept == NULL ? error_set(error, why.code, "%s", why.message)
                        : create_set(kept, order, ret_set, error);
}

/* ---- Calls on sets, and the end of a set ---- */

/* Finds a set that calls may enter. Called with the lock of the sets. */
static struct kept_set *find_set(const struct context_sets *sets, uint64_t id)
{
    list_for_each (link, &sets->sets) {
        struct kept_set *kept = container_of(link, struct kept_set, in_sets);

        if (kept->id == id && kept->set != NULL && !kept->is_ending)
            return kept;
    }
    return NULL;
}

static int refuse_set(uint64_t id, struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_NOT_FOUND,
                     "set %" PRIu64 " of contexts was released, or ended with its lease", id);
}

int context_sets_enter(struct berth_pool *pool, struct berth_context_set handle,
                       struct kept_set **ret_kept, struct berth_error *error)
{
    struct kept_set *kept = NULL;

    if (fork_happened(pool->generation))
        return fork_refuse(error);
    if (handle.pool == pool->serial) {
        pthread_mutex_lock(&pool->context_sets.lock);
        kept = find_set(&pool->context_sets, handle.id);
        if (kept != NULL)
            kept->guests++;
        pthread_mutex_unlock(&pool->context_sets.lock);
    }
    if (kept == NULL)
        return refuse_set(handle.id, error);
    *ret_kept = kept;
    return 0;
}

void context_sets_leave(struct kept_set *kept)
{
    struct context_sets *sets = &kept->pool->context_sets;

    pthread_mutex_lock(&sets->lock);
    kept->guests--;
    if (kept->is_ending)
        pthread_cond_broadcast(&sets->changed);
    pthread_mutex_unlock(&sets->lock);
}

/* Ends a set that no other thread is ending. Called with the lock of the sets, which it
 * releases. */
static void end_set(struct context_sets *sets, struct kept_set *kept)
{
    kept->is_ending = true;
    while (kept->guests > 0)
        pthread_cond_wait(&sets->changed, &sets->lock);
    pthread_mutex_unlock(&sets->lock);
    context_set_destroy(kept->set);
    pthread_mutex_lock(&sets->lock);
    list_remove(&kept->in_sets);
    leave_leases(kept);
    pthread_cond_broadcast(&sets->changed);
    pthread_mutex_unlock(&sets->lock);
    free(kept);
}

int context_sets_end(struct berth_pool *pool, struct berth_context_set handle,
                     struct berth_error *error)
{
    struct kept_set *kept;

    if (fork_happened(pool->generation))
        return fork_refuse(error);
    if (handle.pool != pool->serial)
        return refuse_set(handle.id, error);
    pthread_mutex_lock(&pool->context_sets.lock);
    kept = find_set(&pool->context_sets, handle.id);
    if (kept == NULL) {
        pthread_mutex_unlock(&pool->context_sets.lock);
        return refuse_set(handle.id, error);
    }
    end_set(&pool->context_sets, kept);
    return 0;
}

void context_sets_end_lease(struct berth_pool *pool, uint64_t lease)
{
    struct context_sets *sets = &pool->context_sets;
    struct kept_set *kept;

    pthread_mutex_lock(&sets->lock);
    /* Another thread may be ending the set. */
    while ((kept = find_lease(sets, lease)) != NULL && kept->is_ending)
        pthread_cond_wait(&sets->changed, &sets->lock);
    if (kept == NULL)
        pthread_mutex_unlock(&sets->lock);
    else
        end_set(sets, kept);
}

void context_sets_finish(struct berth_pool *pool)
{
    struct context_sets *sets = &pool->context_sets;

    if (fork_happened(pool->generation))
        return;
    while (!list_is_empty(&sets->sets)) {
        pthread_mutex_lock(&sets->lock);
        end_set(sets, container_of(list_first(&sets->sets), struct kept_set, in_sets));
    }
    pthread_cond_destroy(&sets->changed);
    pthread_mutex_destroy(&sets->lock);
}
