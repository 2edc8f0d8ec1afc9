/* SPDX-License-Identifier: Apache-2.0
 *
 * The contexts of a set. For the files of context_set.h only.
 *
 * There are two locks. An entry's own lock is held during calls of the driver, which may block. The
 * set's lock is taken after it, and only for short reads and changes. So choosing a context never
 * waits for a driver that rebuilds another one.
 */
#ifndef CONTEXT_CONTEXT_ENTRY_H
#define CONTEXT_CONTEXT_ENTRY_H

#include <pthread.h>

#include "context/context_set.h"

struct context_entry {
    /* These never change. */
    struct device_id id;
    struct driver *driver;
    struct native_device device;
    bool stands_in;

    pthread_mutex_t calls;
    struct native_context context; /* protected by `calls` */

    /* Protected by the set's lock; changed only with `calls` held as well. */
    uint32_t generation;
    enum berth_fault fault; /* NONE, REBUILD or GIVE_UP */
    int status;             /* the status that showed the loss */
    bool is_released;

    /* The memory that context_set_best() has promised, and the free memory that this amount is
     * subtracted from. Protected by the set's lock. */
    uint64_t promised;
    struct optional_number last_free;
};

struct context_set {
    pthread_mutex_t lock;
    size_t turn; /* the position that was chosen last; protected by the lock */
    unsigned cuda_flags;
    struct context_callbacks callbacks;
    size_t count;
    struct context_entry entries[];
};

/* Locks the entry's `calls` if the position has this context; context_entry_unlock() unlocks it.
 * Fails with BERTH_ERROR_RANGE, _NOT_FOUND or _STALE. context_entry_lock_any() also accepts earlier
 * generations. */
int context_entry_lock(struct context_set *set, struct context_ref ref,
                       struct context_entry **ret_entry, struct berth_error *error);
int context_entry_lock_any(struct context_set *set, struct context_ref ref,
                           struct context_entry **ret_entry, struct berth_error *error);
void context_entry_unlock(struct context_entry *entry);

/* Classifies a status of the driver and notes a lost context. The caller holds `calls`. */
enum berth_fault context_entry_classify(struct context_set *set, struct context_entry *entry,
                                        int status);

/* Returns 0 if the context is good. Fails with BERTH_ERROR_LOST. The caller holds `calls` or the
 * set's lock. */
int context_entry_check(const struct context_entry *entry, struct berth_error *error);

/* Gets the memory of the entry's device: from the driver, or from the last sample. The caller holds
 * `calls`. */
void context_entry_memory(struct context_set *set, struct context_entry *entry,
                          struct driver_memory *ret_memory);

/* Releases the context unless it is released already. The caller holds `calls`. */
void context_entry_release(struct context_set *set, struct context_entry *entry);

#endif
