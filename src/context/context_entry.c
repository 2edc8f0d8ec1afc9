/* SPDX-License-Identifier: Apache-2.0 */
#include "context/context_entry.h"

#include <inttypes.h>

#include "base/error.h"

/* Fails if the position was released; it may have a newer context. The caller holds the set's lock.
 */
static int check_released(const struct context_entry *entry, struct context_ref ref,
                          struct berth_error *error)
{
    if (entry->is_released || ref.generation == 0 || ref.generation > entry->generation)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "the context on %s is released",
                         device_id_format(entry->id).text);
    return 0;
}

static int check_generation(const struct context_entry *entry, struct context_ref ref,
                            struct berth_error *error)
{
    if (ref.generation < entry->generation)
        return error_set(error, BERTH_ERROR_STALE,
                         "the context on %s is stale: it was rebuilt; expected generation %" PRIu32
                         ", got %" PRIu32,
                         device_id_format(entry->id).text, entry->generation, ref.generation);
    return 0;
}

int context_entry_lock_any(struct context_set *set, struct context_ref ref,
                           struct context_entry **ret_entry, struct berth_error *error)
{
    struct context_entry *entry;
    int code;

    if (ref.position >= set->count) {
        error_set(error, BERTH_ERROR_RANGE, "expected a position below %zu, got %" PRIu32,
                  set->count, ref.position);
        return BERTH_ERROR_RANGE;
    }
    entry = &set->entries[ref.position];
    pthread_mutex_lock(&entry->calls);
    pthread_mutex_lock(&set->lock);
    code = check_released(entry, ref, error);
    pthread_mutex_unlock(&set->lock);
    if (code < 0)
        pthread_mutex_unlock(&entry->calls);
    else
        *ret_entry = entry;
    return code;
}

int context_entry_lock(struct context_set *set, struct context_ref ref,
                       struct context_entry **ret_entry, struct berth_error *error)
{
    struct context_entry *entry = NULL;
    int code = context_entry_lock_any(set, ref, &entry, error);

    if (code < 0)
        return code;
    code = check_generation(entry, ref, error);
    if (code < 0)
        context_entry_unlock(entry);
    else
        *ret_entry = entry;
    return code;
}

void context_entry_unlock(struct context_entry *entry)
{
    pthread_mutex_unlock(&entry->calls);
}

static enum berth_fault fault_of(enum driver_verdict verdict)
{
    switch (verdict) {
    case DRIVER_FINE:
        return BERTH_FAULT_NONE;
    case DRIVER_RETRY:
        return BERTH_FAULT_RETRY;
    case DRIVER_GIVE_UP:
        return BERTH_FAULT_GIVE_UP;
    case DRIVER_REBUILD:
    case DRIVER_UNSURE:
        break;
    }
    return BERTH_FAULT_REBUILD;
}

/* Notes that a context is lost. A lost context stays lost, and a device that was given up stays
 * given up. */
static void note_lost(struct context_set *set, struct context_entry *entry, enum berth_fault fault,
                      int status)
{
    pthread_mutex_lock(&set->lock);
    if (fault > entry->fault) {
        entry->fault = fault;
        entry->status = status;
    }
    pthread_mutex_unlock(&set->lock);
}

enum berth_fault context_entry_classify(struct context_set *set, struct context_entry *entry,
                                        int status)
{
    const struct driver_ops *ops = entry->driver->ops;
    enum driver_verdict verdict = ops->classify(status);
    enum berth_fault fault;

    if (verdict == DRIVER_UNSURE && entry->context.pointer != NULL) {
        int answer = ops->try(entry->driver, &entry->context);

        verdict = answer == 0 ? DRIVER_FINE : ops->classify(answer);
    }
    fault = fault_of(verdict);
    if (fault >= BERTH_FAULT_REBUILD)
        note_lost(set, entry, fault, status);
    /* A wrong call does not make a lost context good. */
    return entry->fault > fault ? entry->fault : fault;
}

int context_entry_check(const struct context_entry *entry, struct berth_error *error)
{
    const char *name;

    if (entry->fault == BERTH_FAULT_NONE)
        return 0;
    name = entry->driver->ops->name_status(entry->driver, entry->status);
    return error_set(error, BERTH_ERROR_LOST, "the context on %s is lost: %.100s (%s %d): %s",
                     device_id_format(entry->id).text, name == NULL ? "a fault" : name,
                     entry->driver->ops->name, entry->status,
                     entry->fault == BERTH_FAULT_REBUILD
                         ? "it can be rebuilt"
                         : "this process can no longer use the device");
}

void context_entry_memory(struct context_set *set, struct context_entry *entry,
                          struct driver_memory *ret_memory)
{
    const struct context_callbacks *callbacks = &set->callbacks;
    struct driver_memory memory = {0};

    if (entry->fault == BERTH_FAULT_NONE) {
        int status = entry->driver->ops->memory(entry->driver, &entry->context, &memory);

        if (status != 0) {
            memory = (struct driver_memory){0};
            context_entry_classify(set, entry, status);
        }
    }
    /* The sample is about the device, not about the CPU that stands in for it. */
    if (!memory.free.known && !entry->stands_in && callbacks->free_memory != NULL)
        memory.free = callbacks->free_memory(callbacks->data, (size_t)(entry - set->entries));
    *ret_memory = memory;
}

void context_entry_release(struct context_set *set, struct context_entry *entry)
{
    if (entry->is_released || entry->driver == NULL)
        return;
    pthread_mutex_lock(&set->lock);
    entry->is_released = true;
    pthread_mutex_unlock(&set->lock);
    /* Ignore the status: if the release fails, the context is already lost. */
    if (entry->context.pointer != NULL)
        entry->driver->ops->destroy(entry->driver, entry->context);
    entry->context = (struct native_context){0};
}
