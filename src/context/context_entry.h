/* SPDX-License-Identifier: Apache-2.0
 *
 * What a set keeps of its contexts; for the files that make up sets.
 *
 * Two locks: an entry's own is held through calls of the driver, which take as long as they like;
 * the set's, which is taken after it, only to look at or change what is known. So whoever chooses
 * among contexts never waits for a driver that rebuilds one.
 */
#ifndef CONTEXT_CONTEXT_ENTRY_H
#define CONTEXT_CONTEXT_ENTRY_H

#include <pthread.h>

#include "context/context_set.h"

struct context_entry {
    /* These stay. */
    struct device_id id;
    struct driver *driver;
    struct native_device device;
    bool stands_in;

    pthread_mutex_t calls;
    struct native_context context; /* under `calls` */

    /* Under the set's lock; changed only by who has `calls`, too. */
    uint32_t generation;
    enum berth_fault fault; /* NONE, REBUILD or GIVE_UP */
    int status;             /* what it was lost by */
    bool is_released;

    /* What context_set_best has promised of its memory, and which figure that was about; under the
     * set's lock. */
    uint64_t promised;
    struct optional_number last_free;
};

struct context_set {
    pthread_mutex_t lock;
    size_t turn; /* the position that had the last one; under the lock */
    unsigned cuda_flags;
    struct context_callbacks callbacks;
    size_t count;
    struct context_entry entries[];
};

/* Takes the entry's `calls` where the place is there; gives it back by context_entry_unlock. Fails
 * with BERTH_ERROR_RANGE, _NOT_FOUND or _STALE. context_entry_lock_any takes earlier generations,
 * too. */
int context_entry_lock(struct context_set *set, struct context_ref ref,
                       struct context_entry **ret_entry, struct berth_error *error);
int context_entry_lock_any(struct context_set *set, struct context_ref ref,
                           struct context_entry **ret_entry, struct berth_error *error);
void context_entry_unlock(struct context_entry *entry);

/* Says of which class the answer of a driver is, and takes note of what is lost. With `calls`. */
enum berth_fault context_entry_classify(struct context_set *set, struct context_entry *entry,
                                        int status);

/* Whether it is good. Fails with BERTH_ERROR_LOST. With `calls` or the set's lock. */
int context_entry_check(const struct context_entry *entry, struct berth_error *error);

/* How much memory its device has: asked, or of the last sample. With `calls`. */
void context_entry_memory(struct context_set *set, struct context_entry *entry,
                          struct driver_memory *ret_memory);

/* Gives back the context, where that has not been done. With `calls`. */
void context_entry_release(struct context_set *set, struct context_entry *entry);

#endif
