/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine with several nodes, for policies that rate nodes.
 */
#ifndef TESTS_ENGINE_NODES_H
#define TESTS_ENGINE_NODES_H

#include "support/engine/engine_steps.h"

enum { NODE_COUNT = 3, NODE_DEVICES = 4 };

/* Starts an engine with three nodes of four devices each, two on each NUMA node. `policy` is the
 * engine's default; NULL: its own. */
static inline void world_init_nodes(struct world *world, const struct policy *policy, uint64_t seed)
{
    const struct engine_settings settings = {
        .time_slice_tenants = 10, .policy = policy, .seed = seed};
    struct machine machine = {0};

    for (uint32_t host = 0; host < NODE_COUNT; host++) {
        struct host *place = vector_append(&machine.hosts);

        assert_non_null(place);
        place->cpus = optional_number_of(16000);
        for (uint32_t i = 0; i < NODE_DEVICES; i++) {
            struct device_id id = {VENDOR_NVIDIA, host * NODE_DEVICES + i, DEVICE_NO_MIG};
            struct device *device = machine_add(&machine, id);

            device->host = host;
            device->numa = optional_number_of(i / 2);
        }
    }
    world_init_with(world, &machine, &settings);
}

/* Claims, and checks that exactly these slots are granted at once. Returns the lease. */
static inline uint64_t check_granted_slots(struct world *world, const char *words,
                                           const char *slots)
{
    uint64_t lease = granted_to(world, words);
    struct lease_view view = lease_in(world, lease);
    struct text found = {0};

    for (uint32_t i = 0; i < view.slot_count; i++)
        text_append_format(&found, "%s%u", i == 0 ? "" : " ", view.slots[i]);
    assert_string_equal(text_string(&found), slots);
    text_finish(&found);
    return lease;
}

#endif
