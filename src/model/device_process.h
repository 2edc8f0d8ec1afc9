/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that uses a device.
 */
#ifndef MODEL_DEVICE_PROCESS_H
#define MODEL_DEVICE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "model/optional.h"

/* The most that are kept of one device. */
#define DEVICE_PROCESSES_MAX 4096

struct device_process {
    uint64_t pid;
    struct optional_number uid;
    struct optional_number memory; /* bytes of the device's own memory */
    char *command;                 /* NULL: unknown */
    char *container;               /* the id of the container that it runs in, unless that is ours,
                                    * too; NULL: none known */
    uint64_t lease;                /* that it belongs to, by its id for people; 0: none known */
    int64_t started;               /* nanoseconds since 1970 UTC; 0: unknown */
    bool draws;                    /* it is only known to draw, not to compute */
    bool squats;                   /* it has no lease and keeps the device from being granted */
    uint64_t said_lease; /* what its environment says (model/lease_mark.h), for whoever joins */
    char *said_socket;   /* processes to leases: others are not told */
    struct optional_number owner; /* likewise: of its container (base/system/process_container.h) */
};

struct device_process_list {
    VECTOR_OF(struct device_process);
};

/* The process with this pid; NULL when there is none. */
struct device_process *device_process_find(const struct device_process_list *list, uint64_t pid);

/* The same, added when it is not there. NULL when there is no memory or no room for more. */
struct device_process *device_process_find_or_add(struct device_process_list *list, uint64_t pid);

/* Appends what to do about a process that is in a container and of no lease; nothing where it is in
 * none. */
void device_process_advise(const struct device_process *process, struct text *out);

/* Frees what the process owns and zeroes it. */
void device_process_finish(struct device_process *process);
void device_process_list_finish(struct device_process_list *list);

#endif
