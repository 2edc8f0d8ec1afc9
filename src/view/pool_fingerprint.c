/* SPDX-License-Identifier: Apache-2.0 */
#include "view/pool_fingerprint.h"

#include "base/hash.h"
#include "view/view_facts.h"

static uint64_t add_optional(uint64_t hash, struct optional_number number)
{
    return hash_add(hash_add(hash, number.known), number.known ? number.value : 0);
}

static uint64_t add_id(uint64_t hash, struct device_id id)
{
    return hash_add(hash_add(hash, (uint64_t)id.vendor << 32 | id.index), id.mig);
}

static uint64_t add_pci(uint64_t hash, struct pci_address pci)
{
    hash = hash_add(hash, (uint64_t)pci.domain << 1 | (uint64_t)pci.known);
    return hash_add(hash, (uint64_t)pci.bus << 16 | (uint64_t)pci.device << 8 | pci.function);
}

/* Adds the facts that change only with the hardware. */
static uint64_t add_hardware(uint64_t hash, const struct device *device)
{
    char **node;

    hash = add_id(hash, device->id);
    hash = hash_add_string(hash, device->name);
    hash = hash_add_string(hash, device->uuid);
    hash = hash_add_string(hash, device->parent);
    hash = hash_add_string(hash, device->cpus);
    hash = hash_add(hash, device->kind);
    hash = add_pci(hash, device->pci);
    hash = hash_add(hash, device->cap.known);
    hash = hash_add(hash, (uint64_t)device->cap.major << 16 | device->cap.minor);
    hash = add_optional(hash, device->memory_total);
    hash = add_optional(hash, device->numa);
    hash = add_optional(hash, device->tiles);
    hash = hash_add(hash, device->nodes.count);
    vector_for_each (node, &device->nodes)
        hash = hash_add_string(hash, *node);
    return hash;
}

static uint64_t add_process(uint64_t hash, const struct device_process *process, bool leftover)
{
    hash = hash_add(hash, process->pid);
    hash = add_optional(hash, process->uid);
    hash = hash_add_string(hash, process->command);
    hash = hash_add_string(hash, process->container);
    hash = hash_add(hash, process->lease);
    hash = hash_add(hash, (uint64_t)process->started);
    return hash_add(hash, (uint64_t)process->squats | (uint64_t)leftover << 1);
}

static uint64_t add_slot(uint64_t hash, const struct pool_view *view, const struct slot_info *slot)
{
    const struct device *device = slot->device;
    const struct device_process *process;

    hash = add_hardware(hash, device);
    hash = hash_add(hash, device->health);
    hash = hash_add_string(hash, device->health_reason);
    hash = hash_add(hash, (uint64_t)device->asleep | (uint64_t)device->old << 1);
    hash = hash_add(hash, slot->state);
    hash = hash_add(hash, slot->sharing);
    hash = hash_add(hash, view_is_drained(slot));
    hash = hash_add_string(hash, slot->reason);
    hash = add_optional(hash, slot->reason_uid);
    hash = hash_add(hash, (uint64_t)slot->reason_time);
    hash = add_optional(hash, slot->name_uid);
    hash = add_optional(hash, slot->name_pid);
    hash = hash_add(hash, device->processes.count);
    vector_for_each (process, &device->processes)
        hash = add_process(hash, process, view_is_leftover(view, slot, process));
    return hash;
}

static uint64_t add_problems(uint64_t hash, const struct pool_view *view)
{
    const struct problem *problem;

    hash = hash_add(hash, view->snapshot.problems.count);
    vector_for_each (problem, &view->snapshot.problems) {
        hash = hash_add_string(hash, problem->backend);
        hash = hash_add_string(hash, problem->message);
    }
    return hash;
}

uint64_t pool_fingerprint_devices(const struct pool_view *view)
{
    uint64_t hash = hash_add(0, view->snapshot.slots.count);
    const struct slot_info *slot;
    const struct pool_use *use;

    vector_for_each (slot, &view->snapshot.slots)
        hash = add_slot(hash, view, slot);
    vector_for_each (use, &view->uses) {
        hash = hash_add(hash, use->slot);
        hash = hash_add(hash, view->snapshot.leases.items[use->lease].id);
    }
    return add_problems(hash, view);
}

uint64_t pool_fingerprint_lease(const struct lease_info *lease)
{
    uint64_t flags = (uint64_t)lease->draining | (uint64_t)lease->idle_warned << 1 |
                     (uint64_t)lease->preparing << 2 | (uint64_t)lease->adopted << 3;
    uint64_t hash = hash_add(hash_add(0, lease->id), flags);

    hash = hash_add(hash, lease->end);
    hash = add_optional(hash, lease->expires);
    hash = add_optional(hash, lease->force_at);
    hash = hash_add(hash, (uint64_t)lease->pid);
    return hash_add_string(hash, lease->name);
}

static uint64_t add_claim(uint64_t hash, const struct claim_info *claim)
{
    hash = hash_add(hash, claim->id);
    hash = hash_add(hash, claim->parent);
    hash = hash_add(hash, claim->uid);
    hash = hash_add(hash, (uint64_t)claim->pid);
    hash = hash_add(hash, claim->position);
    hash = hash_add_string(hash, claim->name);
    hash = hash_add_string(hash, claim->command);
    hash = hash_add_string(hash, claim->request);
    hash = hash_add(hash, (uint64_t)claim->since);
    hash = hash_add_string(hash, claim->why);
    hash = add_optional(hash, claim->estimate);
    return hash_add(hash, (uint64_t)claim->priority << 1 | (uint64_t)claim->opportunistic);
}

uint64_t pool_fingerprint_queue(const struct pool_view *view, size_t claims_max)
{
    size_t count = view->snapshot.claims.count;
    uint64_t hash = hash_add(0, view->snapshot.pending);

    for (size_t i = 0; i < count && i < claims_max; i++)
        hash = add_claim(hash, &view->snapshot.claims.items[i]);
    return hash;
}

static uint64_t add_slot_state(uint64_t hash, const struct slot_info *slot)
{
    const struct device_process *process;

    hash = add_id(hash, slot->device->id);
    hash = hash_add(hash, slot->state);
    hash = hash_add(hash, slot->tenants);
    hash = hash_add(hash, slot->device->health == HEALTH_SICK);
    hash = hash_add(hash, slot->device->old);
    hash = hash_add(hash, slot->blocks);
    hash = hash_add(hash, (uint64_t)slot->reason_time);
    vector_for_each (process, &slot->device->processes) {
        if (process->squats)
            hash = hash_add(hash, process->pid);
    }
    return hash;
}

uint64_t pool_fingerprint_events(const struct pool_view *view)
{
    uint64_t hash = 0;
    const struct slot_info *slot;
    const struct lease_info *lease;
    const struct claim_info *claim;

    vector_for_each (slot, &view->snapshot.slots)
        hash = add_slot_state(hash, slot);
    vector_for_each (lease, &view->snapshot.leases)
        hash = hash_add(hash, pool_fingerprint_lease(lease));
    vector_for_each (claim, &view->snapshot.claims)
        hash = hash_add(hash_add(hash, claim->id), claim->position);
    return add_problems(hash, view);
}
