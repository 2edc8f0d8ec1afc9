/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on one context of a set.
 */
#include "base/error.h"
#include "context/context_entry.h"

int context_check(struct context_set *set, struct context_ref ref, struct berth_error *error)
{
    struct context_entry *entry;
    int code = context_entry_lock(set, ref, &entry, error);

    if (code < 0)
        return code;
    code = context_entry_check(entry, error);
    context_entry_unlock(entry);
    return code;
}

static int64_t signed_or_unknown(struct optional_number number)
{
    return number.known && number.value <= INT64_MAX ? (int64_t)number.value : BERTH_UNKNOWN;
}

int context_info(struct context_set *set, struct context_ref ref,
                 struct berth_context_info *ret_info, struct berth_error *error)
{
    struct driver_memory memory;
    struct context_entry *entry;
    int code = context_entry_lock(set, ref, &entry, error);

    if (code < 0)
        return code;
    context_entry_memory(set, entry, &memory);
    *ret_info = (struct berth_context_info){
        .size = sizeof(*ret_info),
        .api = entry->driver->ops->api,
        .vendor = (enum berth_vendor)entry->id.vendor,
        .index = entry->id.index,
        .mig = entry->id.mig,
        .context = entry->fault == BERTH_FAULT_NONE ? entry->context.pointer : NULL,
        .device = entry->device.pointer,
        .cuda_device = entry->device.number,
        .fault = entry->fault,
        .stands_in = entry->stands_in,
        .memory_free = signed_or_unknown(memory.free),
        .memory_total = signed_or_unknown(memory.total),
    };
    context_entry_unlock(entry);
    return 0;
}

int context_make_current(struct context_set *set, struct context_ref ref, struct berth_error *error)
{
    const struct driver_ops *ops;
    struct context_entry *entry;
    int code = context_entry_lock(set, ref, &entry, error);
    int status;

    if (code < 0)
        return code;
    ops = entry->driver->ops;
    code = context_entry_check(entry, error);
    status = code < 0 || ops->make_current == NULL
                 ? 0
                 : ops->make_current(entry->driver, &entry->context);
    if (status != 0) {
        context_entry_classify(set, entry, status);
        code = context_entry_check(entry, error);
        if (code == 0)
            code = context_driver_set_error(entry->driver, status, BERTH_ERROR_DRIVER, error,
                                            "cannot make the context on %s current",
                                            device_id_format(entry->id).text);
    }
    context_entry_unlock(entry);
    return code;
}

int context_report(struct context_set *set, struct context_ref ref, int status,
                   enum berth_fault *ret_fault, struct berth_error *error)
{
    struct context_entry *entry;
    int code = context_entry_lock(set, ref, &entry, error);

    if (code < 0)
        return code;
    *ret_fault = context_entry_classify(set, entry, status);
    context_entry_unlock(entry);
    return 0;
}

/* Sets the error of a failed rebuild. If the new context is lost at once, this process can no
 * longer use the device. */
static int refuse_rebuilt(struct context_set *set, struct context_entry *entry, int status,
                          struct berth_error *error)
{
    enum berth_fault fault = entry->driver->ops->classify(status) == DRIVER_RETRY
                                 ? BERTH_FAULT_RETRY
                                 : context_entry_classify(set, entry, status);

    if (fault >= BERTH_FAULT_REBUILD) {
        pthread_mutex_lock(&set->lock);
        entry->fault = BERTH_FAULT_GIVE_UP;
        entry->status = status;
        pthread_mutex_unlock(&set->lock);
        return context_entry_check(entry, error);
    }
    return context_driver_set_error(entry->driver, status, BERTH_ERROR_DRIVER, error,
                                    "cannot rebuild the context on %s",
                                    device_id_format(entry->id).text);
}

/* Rebuilds a context that is lost and not given up. */
static int rebuild_entry(struct context_set *set, struct context_entry *entry,
                         struct berth_error *error)
{
    int status;

    if (entry->fault == BERTH_FAULT_NONE)
        return error_set(error, BERTH_ERROR_INVALID, "cannot rebuild the context on %s: it is good",
                         device_id_format(entry->id).text);
    if (entry->fault == BERTH_FAULT_GIVE_UP)
        return context_entry_check(entry, error);
    status = entry->driver->ops->rebuild(entry->driver, &entry->context, set->cuda_flags);
    if (status != 0)
        return refuse_rebuilt(set, entry, status, error);
    pthread_mutex_lock(&set->lock);
    entry->fault = BERTH_FAULT_NONE;
    entry->status = 0;
    entry->generation++;
    pthread_mutex_unlock(&set->lock);
    return 0;
}

int context_rebuild(struct context_set *set, struct context_ref ref, struct context_ref *ret_ref,
                    struct berth_error *error)
{
    struct context_entry *entry;
    int code = context_entry_lock(set, ref, &entry, error);

    if (code < 0)
        return code;
    code = rebuild_entry(set, entry, error);
    if (code == 0)
        *ret_ref = (struct context_ref){ref.position, entry->generation};
    context_entry_unlock(entry);
    return code;
}

int context_release(struct context_set *set, struct context_ref ref, struct berth_error *error)
{
    struct context_entry *entry;
    int code = context_entry_lock_any(set, ref, &entry, error);

    if (code < 0)
        return code;
    context_entry_release(set, entry);
    context_entry_unlock(entry);
    return 0;
}
