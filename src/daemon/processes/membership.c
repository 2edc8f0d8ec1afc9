/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/membership.h"

#include <stdlib.h>
#include <string.h>

static bool is_number(struct optional_number number, uint32_t wanted)
{
    return number.known && number.value == wanted;
}

bool membership_is_of_user(const struct device_process *process, uint32_t uid)
{
    return is_number(process->uid, uid) || is_number(process->owner, uid);
}

bool membership_is_trusted(const struct device_process *process, uint32_t uid)
{
    /* In root's containers there may be any uids. */
    bool is_roots =
        is_number(process->owner, 0) || (process->container != NULL && is_number(process->uid, 0));

    return is_roots || membership_is_of_user(process, uid);
}

bool membership_may_be(const struct use_list *uses, uint32_t slot, uint64_t lease,
                       const struct device_process *process)
{
    const struct lease_use *use;

    vector_for_each (use, uses) {
        if (use->slot == slot && use->lease == lease && membership_is_trusted(process, use->uid))
            return true;
    }
    return false;
}

static bool has_peer(const struct peer_list *peers, const char *container, uint64_t lease)
{
    const struct container_peer *peer;

    vector_for_each (peer, peers) {
        if (peer->lease == lease && strcmp(peer->container, container) == 0)
            return true;
    }
    return false;
}

void membership_find_peers(const struct device_list *devices, struct peer_list *peers)
{
    const struct device_process *process;
    const struct device *device;

    vector_for_each (device, devices) {
        vector_for_each (process, &device->processes) {
            struct container_peer *peer = NULL;

            if (process->lease != 0 && process->container != NULL && peers->count < PEERS_MAX &&
                !has_peer(peers, process->container, process->lease))
                peer = vector_append(peers);
            if (peer != NULL)
                *peer = (struct container_peer){process->container, process->lease};
        }
    }
}

uint64_t membership_by_container(const struct use_list *uses, const struct peer_list *peers,
                                 uint32_t slot, const struct device_process *process)
{
    const struct lease_use *use;
    uint64_t lease = 0;

    if (process->container == NULL)
        return 0;
    vector_for_each (use, uses) {
        bool is_same = use->container != NULL && strcmp(use->container, process->container) == 0;

        if (use->slot != slot || !membership_is_trusted(process, use->uid) ||
            (!is_same && !has_peer(peers, process->container, use->lease)))
            continue;
        if (lease != 0)
            return 0;
        lease = use->lease;
    }
    return lease;
}

uint64_t membership_by_only_lease(const struct use_list *uses, uint32_t slot,
                                  const struct device_process *process)
{
    const struct lease_use *only = NULL;
    const struct lease_use *use;

    if (process->container == NULL && !process->owner.known)
        return 0;
    vector_for_each (use, uses) {
        if (use->slot != slot)
            continue;
        if (only != NULL)
            return 0;
        only = use;
    }
    return only != NULL && membership_is_of_user(process, only->uid) ? only->lease : 0;
}

uint64_t membership_by_reservation(const struct use_list *uses, uint32_t slot,
                                   const struct device_process *process)
{
    const struct lease_use *use;

    vector_for_each (use, uses) {
        if (use->slot == slot && use->pid == 0 && membership_is_of_user(process, use->uid))
            return use->lease;
    }
    return 0;
}
