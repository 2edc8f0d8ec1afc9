/* SPDX-License-Identifier: Apache-2.0
 *
 * Two pools on one machine never give out the same device: a pool holds a kernel-wide name for each
 * device that it leases, an abstract socket that is gone with the process. A pool that finds a name
 * taken connects to it, and learns from the kernel which process holds it and when it lets the name
 * go.
 *
 * The machine's daemon keeps all names from its start on. A name that an ordinary user holds blocks
 * a device of it only while a process of that user is on the device, so that no user can take the
 * machine's devices away by taking their names.
 *
 * Users' own daemons share the devices. They take the names of free devices before a claim is
 * decided, and let them go when another pool asks or nothing happened for a moment. A pool whose
 * lease has just ended answers once it knows whether a process is left, after three quarters of a
 * second at most.
 *
 * Nothing here blocks. All functions belong to the loop's thread.
 */
#ifndef DAEMON_DEVICES_DEVICE_LOCKS_H
#define DAEMON_DEVICES_DEVICE_LOCKS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/loop.h"
#include "model/machine/device.h"

struct device_locks;

/* The process that holds the name of a device. */
struct device_lock_holder {
    bool is_known; /* false: it does not listen, so the kernel does not tell */
    uint32_t uid;
    int32_t pid;
    bool blocks; /* the device must not be granted */
};

/* Callbacks, which must not call device_locks_destroy(). */
struct device_locks_events {
    void *context;

    /* Whether the pool leases the device, or hands it over. */
    bool (*is_leased)(void *context, uint32_t slot);
    /* Whether the device's lease has ended, and it shows in a moment whether a process is left. */
    bool (*is_ending)(void *context, uint32_t slot);
    /* Whether a claim or a test waits, so that a free device could be granted at any moment. */
    bool (*is_wanted)(void *context);
    /* Whether a process of the user is on the device. */
    bool (*is_used_by)(void *context, uint32_t slot, uint32_t uid);

    /* The device may be granted, as far as other pools are concerned. */
    void (*unblock)(void *context, uint32_t slot);
    /* Another pool has the device. */
    void (*block)(void *context, uint32_t slot);
    /* The holder of the name has changed; NULL: no other process holds it any more. */
    void (*holder_changed)(void *context, uint32_t slot, const struct device_lock_holder *holder);
    /* No answer of another pool is awaited any more. */
    void (*answered)(void *context);
    /* Devices were blocked or unblocked outside of a call of these functions. */
    void (*changed)(void *context);
};

struct device_locks_settings {
    struct loop *loop;
    const char *scope; /* part of the names; NULL: the machine's hardware */
    uint32_t uid;      /* of this pool's daemon */
    bool keeps_all;    /* this is the machine's daemon: it keeps all names */
    size_t max;        /* slots */
    struct device_locks_events events;
};

/* Pools with more slots than this have no locks. */
#define DEVICE_LOCKS_MAX 1024

/* Creates locks without devices. `scope` is copied. Fails with BERTH_ERROR_MEMORY. */
int device_locks_create(struct device_locks **ret_locks,
                        const struct device_locks_settings *settings, struct berth_error *error);
/* Releases all names and frees the locks. Accepts NULL. */
void device_locks_destroy(struct device_locks *locks);

/* Adds the device of the next slot, or notes the new address of one that is there. The engine must
 * be paused, because an unblocked device is granted at once: the name comes first. */
void device_locks_add(struct device_locks *locks, uint32_t slot, const struct device *device);

/* Takes the names of free devices, before a claim or a test is decided. Returns whether another
 * pool has yet to say that it uses a device. */
bool device_locks_are_unsettled(struct device_locks *locks);
/* Returns whether an answer of another pool is still awaited. */
bool device_locks_are_awaited(const struct device_locks *locks);

/* Looks again at names that others asked for, after leases or the processes on devices changed. */
void device_locks_update(struct device_locks *locks);

/* Returns whether another process holds the name of the slot, and which. */
bool device_locks_find_holder(const struct device_locks *locks, uint32_t slot,
                              struct device_lock_holder *ret_holder);

#endif
