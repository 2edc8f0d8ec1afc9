/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/process_attribution.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/quantity.h"
#include "daemon/processes/membership.h"

/* ---- The rules ---- */

/* Returns the lease on the slot that the process holds; 0: none. Of several, the last is within the
 * others. */
static uint64_t lease_by_holder(const struct use_list *uses, uint32_t slot, uint64_t pid)
{
    for (size_t use = uses->count; use-- > 0;) {
        if (uses->items[use].slot == slot && uses->items[use].pid > 0 &&
            (uint64_t)uses->items[use].pid == pid)
            return uses->items[use].lease;
    }
    return 0;
}

/* Returns the lease on the slot that the process, or its nearest ancestor with one, holds; 0: none.
 */
static uint64_t lease_by_ancestors(const struct use_list *uses, uint32_t slot,
                                   const struct device_process *process)
{
    uint64_t lease = lease_by_holder(uses, slot, process->pid);

    for (uint32_t i = 0; lease == 0 && i < process->ancestor_count; i++)
        lease = lease_by_holder(uses, slot, process->ancestors[i]);
    return lease;
}

/* Returns whether the lease has ended, and the process may have belonged to it. */
static bool is_over(const struct attribution *attribution, uint64_t lease,
                    const struct device_process *process)
{
    uint32_t uid;

    return attribution->find_ended(attribution->context, lease, &uid) &&
           membership_is_trusted(process, uid);
}

static uint64_t lease_by_mark(const struct attribution *attribution, uint32_t slot,
                              const struct device_process *process)
{
    uint64_t lease = process->said_lease;

    if (process->said_socket == NULL || strcmp(process->said_socket, attribution->socket) != 0)
        return 0;
    return membership_may_be(attribution->uses, slot, lease, process) ||
                   is_over(attribution, lease, process)
               ? lease
               : 0;
}

/* Returns the process's lease of the last report, if that lease is still on the slot or has ended
 * since; 0: it had none. */
static uint64_t lease_before(const struct attribution *attribution, uint32_t slot,
                             const struct device_process *process, uint64_t known)
{
    if (known == 0)
        return 0;
    return membership_may_be(attribution->uses, slot, known, process) ||
                   !attribution->is_known(attribution->context, known)
               ? known
               : 0;
}

/* Returns the lease that the process had at the last report. */
static uint64_t known_lease(const struct device *device, const struct device_process *process)
{
    const struct device_process *before = device_process_find(&device->processes, process->pid);

    /* The start has an error of a second. */
    return before != NULL && llabs(before->started - process->started) <= 2 * DURATION_SECOND
               ? before->lease
               : 0;
}

/* Applies the rules that need only the process. */
static void join_process(const struct attribution *attribution, uint32_t slot,
                         struct device_process *process)
{
    process->lease = lease_by_ancestors(attribution->uses, slot, process);
    if (process->lease == 0)
        process->lease = lease_by_mark(attribution, slot, process);
}

/* Applies the other rules, if those gave no lease. */
static void join_by_others(const struct attribution *attribution, const struct peer_list *peers,
                           uint32_t slot, struct device_process *process, uint64_t known)
{
    const struct use_list *uses = attribution->uses;

    if (process->lease == 0)
        process->lease = membership_by_container(uses, peers, slot, process);
    if (process->lease == 0)
        process->lease = membership_by_only_lease(uses, slot, process);
    if (process->lease == 0)
        process->lease = membership_by_reservation(uses, slot, process);
    if (process->lease == 0)
        process->lease = lease_before(attribution, slot, process, known);
}

/* ---- Reports ---- */

/* Returns the slot of a device in a report; the number of slots if it has none or no process. */
static size_t find_slot(const struct device_list *known, const struct device *device)
{
    return device->processes.count == 0 ? known->count : device_list_find(known, device->id);
}

void process_attribution_join(const struct attribution *attribution,
                              const struct device_list *known, struct device_list *found)
{
    struct peer_list peers = {0};
    struct device_process *process;
    struct device *device;

    vector_for_each (device, found) {
        size_t slot = find_slot(known, device);

        vector_for_each (process, &device->processes) {
            process->lease = 0;
            if (slot < known->count)
                join_process(attribution, (uint32_t)slot, process);
        }
    }
    membership_find_peers(found, &peers);
    vector_for_each (device, found) {
        size_t slot = find_slot(known, device);

        vector_for_each (process, &device->processes) {
            if (slot < known->count)
                join_by_others(attribution, &peers, (uint32_t)slot, process,
                               known_lease(&known->items[slot], process));
        }
    }
    vector_finish(&peers);
}

void process_attribution_join_again(const struct attribution *attribution,
                                    const struct device_list *known, uint32_t slot,
                                    struct device_process_list *processes)
{
    struct peer_list peers = {0};
    struct device_process *process;

    membership_find_peers(known, &peers);
    vector_for_each (process, processes) {
        uint64_t before = process->lease;

        join_process(attribution, slot, process);
        join_by_others(attribution, &peers, slot, process, before);
    }
    vector_finish(&peers);
}

bool process_attribution_is_below(const struct device_process *process, pid_t ancestor)
{
    if (process->pid == (uint64_t)ancestor)
        return true;
    for (uint32_t i = 0; i < process->ancestor_count; i++) {
        if (process->ancestors[i] == (uint32_t)ancestor)
            return true;
    }
    return false;
}
