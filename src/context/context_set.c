/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates sets and chooses among their contexts.
 */
#include "context/context_set.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "context/context_entry.h"

/* ---- Creating sets ---- */

/* The drivers that may serve a device; the first one that does is used. */
struct candidates {
    const struct driver_ops *ops[2];
    size_t count;
};

static struct candidates candidates_for(enum berth_api api, enum vendor vendor)
{
    if (api == BERTH_API_CUDA)
        return (struct candidates){{&cuda_driver}, 1};
    if (api == BERTH_API_ANY && vendor == VENDOR_NVIDIA)
        return (struct candidates){{&cuda_driver, &opencl_driver}, 2};
    return (struct candidates){{&opencl_driver}, 1};
}

/* Returns whether another driver may know the device: this one is missing or does not know it. */
static bool may_be_elsewhere(int code)
{
    return code == BERTH_ERROR_NOT_FOUND || code == BERTH_ERROR_NO_DEVICE;
}

/* If both drivers refuse, the error of the first one is reported, because it is the preferred one.
 */
static int find_device(const struct context_set_config *config, const struct context_target *target,
                       struct context_entry *entry, struct berth_error *error)
{
    struct candidates candidates = candidates_for(config->api, target->id.vendor);
    struct berth_error later = BERTH_ERROR_INIT;
    int code = BERTH_ERROR_NOT_FOUND;

    for (size_t i = 0; i < candidates.count; i++) {
        struct berth_error *reported = i == 0 ? error : &later;
        int found = context_driver_get(candidates.ops[i], &entry->driver, reported);

        if (found == 0)
            found = entry->driver->ops->find(entry->driver, target, &entry->device, reported);
        if (found == 0)
            return 0;
        entry->driver = NULL;
        if (i == 0)
            code = found;
        if (!may_be_elsewhere(found)) {
            if (i > 0)
                error_set(error, found, "%s", later.message);
            return found;
        }
    }
    return code;
}

/* Gives the device a part of a CPU, the same part in every set. */
static int give_cpu_part(const struct context_set_config *config,
                         const struct context_target *target, struct context_entry *entry,
                         struct berth_error *error)
{
    int code = context_driver_get(&opencl_driver, &entry->driver, error);

    if (code == 0)
        code = opencl_driver.stand_in(entry->driver, target->slot, config->parts, &entry->device,
                                      error);
    if (code < 0)
        entry->driver = NULL;
    entry->stands_in = code == 0;
    return code;
}

static int make_entry(const struct context_set_config *config, size_t number,
                      struct context_entry *entry, struct berth_error *error)
{
    const struct context_target *target = &config->targets[number];
    int code = find_device(config, target, entry, error);
    int status;

    if (may_be_elsewhere(code) && config->parts > 0 && config->api != BERTH_API_CUDA)
        code = give_cpu_part(config, target, entry, error);
    if (entry->driver == NULL)
        return error_wrap(error, code, "%s", device_id_format(target->id).text);
    status = entry->driver->ops->create(entry->driver, entry->device, config->cuda_flags,
                                        &entry->context);
    if (status == 0)
        return 0;
    entry->context = (struct native_context){0};
    return context_driver_set_error(entry->driver, status, BERTH_ERROR_DRIVER, error,
                                    "cannot create a context on %s",
                                    device_id_format(target->id).text);
}

int context_set_create(const struct context_set_config *config, struct context_set **ret_set,
                       struct berth_error *error)
{
    struct context_set *set = calloc(1, sizeof(*set) + config->count * sizeof(set->entries[0]));
    int code = 0;

    if (set == NULL)
        return error_set_memory(error);
    pthread_mutex_init(&set->lock, NULL);
    set->count = config->count;
    set->turn = config->count - 1;
    set->cuda_flags = config->cuda_flags;
    set->callbacks = config->callbacks;
    for (size_t i = 0; i < config->count; i++) {
        pthread_mutex_init(&set->entries[i].calls, NULL);
        set->entries[i].id = config->targets[i].id;
        set->entries[i].generation = 1;
    }
    for (size_t i = 0; i < config->count && code == 0; i++)
        code = make_entry(config, i, &set->entries[i], error);
    if (code < 0)
        context_set_destroy(set);
    else
        *ret_set = set;
    return code;
}

void context_set_destroy(struct context_set *set)
{
    if (set == NULL)
        return;
    for (size_t i = 0; i < set->count; i++) {
        struct context_entry *entry = &set->entries[i];

        pthread_mutex_lock(&entry->calls);
        context_entry_release(set, entry);
        pthread_mutex_unlock(&entry->calls);
        pthread_mutex_destroy(&entry->calls);
    }
    pthread_mutex_destroy(&set->lock);
    free(set);
}

/* ---- Looking up contexts ---- */

static struct context_ref make_ref(const struct context_set *set, const struct context_entry *entry)
{
    return (struct context_ref){
        .position = (uint32_t)(entry - set->entries),
        .generation = entry->generation,
    };
}

int context_set_at(struct context_set *set, size_t position, struct context_ref *ret_ref,
                   struct berth_error *error)
{
    int code = 0;

    if (position >= set->count)
        return error_set(error, BERTH_ERROR_RANGE, "expected a position below %zu, got %zu",
                         set->count, position);
    pthread_mutex_lock(&set->lock);
    if (set->entries[position].is_released)
        code = error_set(error, BERTH_ERROR_NOT_FOUND, "the context on %s is released",
                         device_id_format(set->entries[position].id).text);
    else
        *ret_ref = make_ref(set, &set->entries[position]);
    pthread_mutex_unlock(&set->lock);
    return code;
}

int context_set_find(struct context_set *set, struct device_id id, struct context_ref *ret_ref,
                     struct berth_error *error)
{
    for (size_t i = 0; i < set->count; i++) {
        if (device_id_equals(set->entries[i].id, id))
            return context_set_at(set, i, ret_ref, error);
    }
    return error_set(error, BERTH_ERROR_NOT_FOUND, "no context on %s in this set",
                     device_id_format(id).text);
}

/* ---- Choosing a context ---- */

/* The caller holds the set's lock. */
static bool is_usable(const struct context_set *set, const struct context_entry *entry)
{
    const struct context_callbacks *callbacks = &set->callbacks;

    return !entry->is_released && entry->fault == BERTH_FAULT_NONE &&
           (callbacks->is_available == NULL ||
            callbacks->is_available(callbacks->data, (size_t)(entry - set->entries)));
}

static int refuse_all_contexts(struct berth_error *error)
{
    return error_set(
        error, BERTH_ERROR_LOST,
        "no good context: each is lost, released, or on a device that is sick or gone");
}

/* Chooses the first good context after the one that was chosen last. Contexts that are not good are
 * skipped, and there is no counter that could overflow, so all good contexts get equal shares. */
int context_set_next(struct context_set *set, struct context_ref *ret_ref,
                     struct berth_error *error)
{
    int code = refuse_all_contexts(NULL);

    pthread_mutex_lock(&set->lock);
    for (size_t i = 1; i <= set->count && code < 0; i++) {
        size_t position = (set->turn + i) % set->count;

        if (is_usable(set, &set->entries[position])) {
            set->turn = position;
            *ret_ref = make_ref(set, &set->entries[position]);
            code = 0;
        }
    }
    pthread_mutex_unlock(&set->lock);
    return code < 0 ? refuse_all_contexts(error) : 0;
}

/* Updates the free memory. A new figure already includes the earlier promises, so they end. */
static void update_memory(struct context_set *set, struct context_entry *entry)
{
    struct driver_memory memory = {0};

    pthread_mutex_lock(&entry->calls);
    if (!entry->is_released)
        context_entry_memory(set, entry, &memory);
    pthread_mutex_lock(&set->lock);
    if (memory.free.known != entry->last_free.known ||
        memory.free.value != entry->last_free.value) {
        entry->last_free = memory.free;
        entry->promised = 0;
    }
    pthread_mutex_unlock(&set->lock);
    pthread_mutex_unlock(&entry->calls);
}

/* Updates good contexts only: another thread may be rebuilding the others, which would block. */
static void update_all_memory(struct context_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        bool usable;

        pthread_mutex_lock(&set->lock);
        usable = is_usable(set, &set->entries[i]);
        pthread_mutex_unlock(&set->lock);
        if (usable)
            update_memory(set, &set->entries[i]);
    }
}

/* Returns the memory that is neither used nor promised. */
static uint64_t available_memory(const struct context_entry *entry)
{
    return entry->promised < entry->last_free.value ? entry->last_free.value - entry->promised : 0;
}

struct choice_of_best {
    struct context_entry *best; /* NULL: none */
    bool is_any_usable;
};

/* The caller holds the set's lock. */
static struct choice_of_best choose_best(struct context_set *set)
{
    struct choice_of_best choice = {0};

    for (size_t i = 0; i < set->count; i++) {
        struct context_entry *entry = &set->entries[i];

        if (!is_usable(set, entry))
            continue;
        choice.is_any_usable = true;
        if (entry->last_free.known &&
            (choice.best == NULL || available_memory(entry) > available_memory(choice.best)))
            choice.best = entry;
    }
    return choice;
}

int context_set_best(struct context_set *set, uint64_t bytes, struct context_ref *ret_ref,
                     struct berth_error *error)
{
    struct choice_of_best choice;
    uint64_t left = 0;
    bool fits = false;

    update_all_memory(set);
    pthread_mutex_lock(&set->lock);
    choice = choose_best(set);
    if (choice.best != NULL) {
        left = available_memory(choice.best);
        fits = bytes <= left;
        if (fits) {
            choice.best->promised += bytes;
            *ret_ref = make_ref(set, choice.best);
        }
    }
    pthread_mutex_unlock(&set->lock);
    if (!choice.is_any_usable)
        return refuse_all_contexts(error);
    if (choice.best == NULL)
        return error_set(error, BERTH_ERROR_IMPOSSIBLE,
                         "cannot choose by free memory: it is unknown for all devices");
    if (!fits)
        return error_set(error, BERTH_ERROR_BUSY,
                         "requested %" PRIu64 " bytes, but at most %" PRIu64
                         " are free on a device",
                         bytes, left);
    return 0;
}

/* ---- Description ---- */

static void describe_entry(const struct context_entry *entry, struct text *out)
{
    device_id_append(entry->id, out);
    text_append_char(out, ' ');
    text_append(out, entry->driver->ops->name);
    if (entry->stands_in)
        text_append(out, " on the CPU");
    if (entry->is_released)
        text_append(out, " (released)");
    else if (entry->fault == BERTH_FAULT_REBUILD)
        text_append(out, " (lost)");
    else if (entry->fault == BERTH_FAULT_GIVE_UP)
        text_append(out, " (given up)");
    else if (entry->generation > 1)
        text_append_format(out, " (generation %" PRIu32 ")", entry->generation);
}

void context_set_describe(struct context_set *set, struct text *out)
{
    text_append_format(out, "%zu context%s: ", set->count, set->count == 1 ? "" : "s");
    pthread_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->count; i++) {
        if (i > 0)
            text_append(out, ", ");
        describe_entry(&set->entries[i], out);
    }
    pthread_mutex_unlock(&set->lock);
}
