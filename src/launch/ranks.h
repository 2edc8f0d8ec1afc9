/* SPDX-License-Identifier: Apache-2.0
 *
 * Which copies of a command run under a lease, and what each of them is told: one for each replica,
 * or with ranks one for each of its devices. Pure.
 */
#ifndef LAUNCH_RANKS_H
#define LAUNCH_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/environment.h"
#include "model/device.h"

/* The allocation, and how it is split. */
struct rank_plan {
    const struct device *devices; /* replica by replica; NULL: none, every GPU is hidden */
    uint32_t replicas;
    uint32_t each; /* devices of a replica; without devices, the ranks of one */
    bool ranks;    /* one copy for each device */
    bool only_own; /* a rank sees its own device, not all of its replica */
    uint16_t port; /* where ranks meet */
    const char *backend;
    const char *interface; /* NULL: none was asked for */
};

/* One copy; points to the plan's devices. */
struct rank_copy {
    uint32_t replica;
    const struct device *devices; /* that it may use */
    size_t device_count;
    const struct device *near; /* whose CPUs it is to run on */
    size_t near_count;
    struct rank_facts rank; /* with ranks */
};

/* How many copies there are in all. */
uint64_t rank_plan_copies(const struct rank_plan *plan);

/* The copy of this number, which with ranks is its rank and else its replica. */
struct rank_copy rank_plan_copy(const struct rank_plan *plan, uint32_t number);

#endif
