/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules that assign a process on a device to a lease by the facts about both (process_attribution.h
 * has all rules). Pure functions.
 *
 * Some facts about a process are chosen by its user:
 *  - the environment, freely;
 *  - the container: a user with control groups of their own can name one docker-<64 digits>.
 * Others are not:
 *  - the uid, except the user's own and that of a program with the set-user-id bit;
 *  - the owner of the container (base/system/process_container.h), except the user and, by such a
 *    program that creates namespaces, root.
 * So every rule requires the lease's user, by the uid or by the owner, or root. A process of root
 * in a container was put there by root, or by a user of docker, who is as powerful as root. A user
 * with such a program and such a group can only add one more process to another user's lease, on
 * that lease's device. The process is then not reported as a squatter but ended with the lease; as
 * a squatter it would keep the device blocked for as long as its user likes.
 */
#ifndef DAEMON_PROCESSES_MEMBERSHIP_H
#define DAEMON_PROCESSES_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vector.h"
#include "model/machine/device.h"

/* A lease on a device. */
struct lease_use {
    uint32_t slot;
    uint32_t uid;          /* of the lease */
    uint64_t lease;        /* the id that users see */
    pid_t pid;             /* the holder; 0: no process holds it */
    const char *container; /* of the adopted process; NULL: none */
};

struct use_list {
    VECTOR_OF(struct lease_use);
};

/* A container with a process of the lease, on any device. */
struct container_peer {
    const char *container;
    uint64_t lease;
};

/* More containers than any machine with GPUs runs. */
enum { PEERS_MAX = 256 };

struct peer_list {
    VECTOR_OF(struct container_peer);
};

/* Returns whether the process is the user's: by its uid, or as the owner of its container. */
bool membership_is_of_user(const struct device_process *process, uint32_t uid);

/* Returns whether the process can belong to leases of the user: it is the user's, or root's in a
 * container. */
bool membership_is_trusted(const struct device_process *process, uint32_t uid);

/* Returns whether the lease is on the slot and the process can belong to it. */
bool membership_may_be(const struct use_list *uses, uint32_t slot, uint64_t lease,
                       const struct device_process *process);

/* Adds the container of each process of a lease. The peers refer to the processes' texts. Without
 * memory there are fewer. */
void membership_find_peers(const struct device_list *devices, struct peer_list *peers);

/* Returns the lease of the other processes in the same container, or of the adopted container; 0:
 * none, or several. A user gains nothing by naming a control group like another user's container.
 */
uint64_t membership_by_container(const struct use_list *uses, const struct peer_list *peers,
                                 uint32_t slot, const struct device_process *process);

/* Returns the only lease on the device, if it belongs to the process's user and the process is in a
 * container or a user namespace of its own; 0: none. This user has the device anyway. */
uint64_t membership_by_only_lease(const struct use_list *uses, uint32_t slot,
                                  const struct device_process *process);

/* Returns the lease of the process's user that no process holds; 0: none. */
uint64_t membership_by_reservation(const struct use_list *uses, uint32_t slot,
                                   const struct device_process *process);

#endif
