/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans the copies of a command under a lease: one per replica, or with ranks one per device. Pure
 * functions.
 */
#ifndef LAUNCH_RANKS_H
#define LAUNCH_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/environment.h"
#include "model/machine/device.h"

/* The devices of a lease, and how copies share them. */
struct rank_plan {
    const struct device *devices; /* replica by replica; NULL: none, all GPUs are hidden */
    uint32_t replicas;
    uint32_t each; /* devices per replica; without devices, ranks per replica */
    bool ranks;    /* one copy per device */
    bool only_own; /* a rank sees only its own device, not its replica's */
    uint16_t port; /* MASTER_PORT */
    const char *backend;
    const char *interface; /* NULL: none */
};

/* One copy; points to the plan's devices. */
struct rank_copy {
    uint32_t replica;
    const struct device *devices; /* the devices that it may use */
    size_t device_count;
    const struct device *near; /* the devices whose CPUs it is pinned to */
    size_t near_count;
    struct rank_facts rank; /* only with ranks */
};

/* Returns the number of copies. */
uint64_t rank_plan_copies(const struct rank_plan *plan);

/* Returns the copy with this number: its rank if there are ranks, else its replica. */
struct rank_copy rank_plan_copy(const struct rank_plan *plan, uint32_t number);

#endif
