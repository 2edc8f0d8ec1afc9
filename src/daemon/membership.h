/* SPDX-License-Identifier: Apache-2.0
 *
 * By which lease a process is on a device, as far as what is said of both decides it
 * (daemon/processes.h has all of the rules). Pure.
 *
 * Of what is said of a process, a user can choose
 *  - its environment, freely;
 *  - its container: who has control groups of his own can name one docker-<64 digits>;
 * and cannot choose
 *  - its uid, but for his own and, by a program with the set-user-id bit, that program's;
 *  - who answers for its container (base/system/process_container.h), but for himself and, by such
 * a program that makes namespaces, root. So every rule asks for the lease's user, by the uid or by
 * who answers, or for root. What is root's in a container was put there by root, or by somebody
 * whom root lets do so (who may use docker is root). What a user with such a program and a group of
 * such a name can pass for is what he says: one more process of somebody's lease, on that lease's
 * device. He is not named as a squatter there then; he is ended with the lease, where a squatter
 * would keep the device from being granted for as long as he likes.
 */
#ifndef DAEMON_MEMBERSHIP_H
#define DAEMON_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vector.h"
#include "model/machine/device.h"

/* That a device is under a lease. */
struct use {
    uint32_t slot;
    uint32_t uid;    /* of the lease */
    uint64_t lease;  /* its id for people */
    pid_t pid;       /* that holds it; 0: no process does */
    char *container; /* that began with this process, which was adopted; NULL: none */
};

struct use_list {
    VECTOR_OF(struct use);
};

void use_list_finish(struct use_list *uses);

/* That a process in the container is of the lease, whichever device it is on. */
struct peer {
    const char *container;
    uint64_t lease;
};

/* So many are enough for containers that are there to work. */
enum { PEERS_MAX = 256 };

struct peer_list {
    VECTOR_OF(struct peer);
};

/* Whether the process is the user's: by its uid, or since he answers for its container. */
bool membership_is_of_user(const struct device_process *process, uint32_t uid);

/* Whether what is said of the process counts for leases of the user: it is his, or root's in a
 * container. */
bool membership_is_trusted(const struct device_process *process, uint32_t uid);

/* Whether the lease is on the slot, and what is said of the process counts for it. */
bool membership_may_be(const struct use_list *uses, uint32_t slot, uint64_t lease,
                       const struct device_process *process);

/* Notes the container of each process that is of a lease. The peers refer to the processes' texts.
 * Without memory there are fewer. */
void membership_find_peers(const struct device_list *devices, struct peer_list *peers);

/* The lease that the process is of since all else in its container is, or the container was adopted
 * with it; 0: there is none, or several. Nobody gains by naming his group like somebody's container
 * unless he is that user, or root. */
uint64_t membership_by_container(const struct use_list *uses, const struct peer_list *peers,
                                 uint32_t slot, const struct device_process *process);

/* The only lease on the device, where it is of the user whose the process is and that is in a
 * container or a user namespace of its own; 0: none. He has the device anyway. */
uint64_t membership_by_only_lease(const struct use_list *uses, uint32_t slot,
                                  const struct device_process *process);

/* The lease that no process holds, of the user whose the process is; 0: none. */
uint64_t membership_by_reservation(const struct use_list *uses, uint32_t slot,
                                   const struct device_process *process);

#endif
