/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns the processes on devices to leases. A process belongs to a lease on its device by the
 * first of these rules that holds:
 *
 *  1. The process, or one of its ancestors, holds the lease.
 *  2. It carries the lease in its environment (model/lease_mark.h), and belongs to the lease's
 * user, or to root in a container. The processes of a container are often no children of the
 * program that started it: docker's are children of its daemon, podman's have left their parents.
 *  3. Another process of its container belongs to the lease, or the container was adopted, and the
 *     process belongs to the lease's user or to root: it joined the container later.
 *  4. It is in a container or a user namespace of its own, belongs to the lease's user, and no
 * other lease is on the device: the container was started without the mark.
 *  5. No process holds the lease (a reservation), and the process belongs to its user.
 *  6. It belonged to the lease at the last report: it has wiped its environment and left its
 * parents since.
 *
 * A process belongs to a user by its uid, or by the owner of its container
 * (base/system/process_container.h). "In a container" means in another container than the daemon.
 * processes/membership.h says what a hostile user could gain by each rule. Unknown facts of a
 * process fulfil no rule. Pure functions.
 */
#ifndef DAEMON_PROCESSES_PROCESS_ATTRIBUTION_H
#define DAEMON_PROCESSES_PROCESS_ATTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/processes/membership.h"

struct device_list;
struct device_process;
struct device_process_list;

/* The facts about leases. */
struct attribution {
    const struct use_list *uses;
    const char *socket; /* of this pool, as marks name it */
    /* Finds the user of an ended lease. Returns false if no ended lease with this id is known. */
    bool (*find_ended)(void *context, uint64_t lease, uint32_t *ret_uid);
    /* Returns whether the lease with this id goes on. */
    bool (*is_known)(void *context, uint64_t lease);
    void *context;
};

/* Sets the leases of the processes in a report. A process that an ended lease left keeps its id.
 * `known` are the devices by slot, with the processes of the last report. Without memory, some
 * processes have no lease. */
void process_attribution_join(const struct attribution *attribution,
                              const struct device_list *known, struct device_list *found);

/* Does the same for the processes of the slot's last report, because leases came or went. */
void process_attribution_join_again(const struct attribution *attribution,
                                    const struct device_list *known, uint32_t slot,
                                    struct device_process_list *processes);

/* Returns whether the process is the other one or descends from it. */
bool process_attribution_is_below(const struct device_process *process, pid_t ancestor);

#endif
