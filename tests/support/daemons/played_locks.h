/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets a test play the locks between pools: these functions take the place of
 * src/daemon/devices/device_locks.c in the test program that includes this header, so that no name
 * is taken on this machine. The test sets what the locks say, and calls their events.
 */
#ifndef TESTS_PLAYED_LOCKS_H
#define TESTS_PLAYED_LOCKS_H

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/devices/device_locks.h"

struct device_locks {
    struct device_locks_settings settings;
    char scope[32]; /* a copy; empty: none */

    /* Answers of the locks; set by the test. */
    bool are_unsettled;
    bool are_awaited;
    bool has_holder; /* of each slot */
    struct device_lock_holder holder;

    /* Calls of the locks. */
    uint32_t added; /* slots */
    int updated;    /* calls of device_locks_update() */
    int asked;      /* calls of device_locks_are_unsettled() */
};

int device_locks_create(struct device_locks **ret_locks,
                        const struct device_locks_settings *settings, struct berth_error *error)
{
    struct device_locks *locks = calloc(1, sizeof(*locks));

    (void)error;
    if (locks == NULL)
        return BERTH_ERROR_MEMORY;
    locks->settings = *settings;
    if (settings->scope != NULL)
        strncpy(locks->scope, settings->scope, sizeof(locks->scope) - 1);
    *ret_locks = locks;
    return 0;
}

void device_locks_destroy(struct device_locks *locks)
{
    free(locks);
}

void device_locks_add(struct device_locks *locks, uint32_t slot, const struct device *device)
{
    (void)device;
    assert_int_equal(slot, locks->added);
    locks->added++;
}

bool device_locks_are_unsettled(struct device_locks *locks)
{
    locks->asked++;
    return locks->are_unsettled;
}

bool device_locks_are_awaited(const struct device_locks *locks)
{
    return locks->are_awaited;
}

void device_locks_update(struct device_locks *locks)
{
    locks->updated++;
}

bool device_locks_find_holder(const struct device_locks *locks, uint32_t slot,
                              struct device_lock_holder *ret_holder)
{
    (void)slot;
    *ret_holder = locks->holder;
    return locks->has_holder;
}

#endif
