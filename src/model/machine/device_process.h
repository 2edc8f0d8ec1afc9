/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that uses a device.
 */
#ifndef MODEL_MACHINE_DEVICE_PROCESS_H
#define MODEL_MACHINE_DEVICE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/text/text.h"
#include "base/vector.h"

/* The maximum number of processes of one device; further processes are ignored. */
#define DEVICE_PROCESSES_MAX 4096

struct device_process {
    uint64_t pid;
    struct optional_number uid;
    struct optional_number memory; /* bytes of the device's own memory */
    char *command;                 /* NULL: unknown */
    char *container;               /* the id of its container, if that is not the reader's own;
                                    * NULL: none known */
    uint64_t lease;                /* the id of its lease; 0: none known */
    int64_t started;               /* nanoseconds since 1970 UTC; 0: unknown */
    bool draws;                    /* it is only known to draw, not to compute */
    bool squats;                   /* it has no lease and keeps the device from being granted */

    /* The probe sets these for the daemon, which assigns processes to leases. */
    uint64_t said_lease;          /* the lease in its environment (model/lease_mark.h) */
    char *said_socket;            /* the socket in its environment */
    struct optional_number owner; /* of its container (base/system/process_container.h) */
};

struct device_process_list {
    VECTOR_OF(struct device_process);
};

/* Returns the process with this pid, or NULL when there is none. */
struct device_process *device_process_find(const struct device_process_list *list, uint64_t pid);

/* Returns the process with this pid, and adds it when there is none. Returns NULL when there is no
 * memory, or the list is full. */
struct device_process *device_process_find_or_add(struct device_process_list *list, uint64_t pid);

/* Appends advice for a process in a container that has no lease. Appends nothing when the process
 * is in no container. */
void device_process_advise(const struct device_process *process, struct text *out);

/* Frees what the process owns and zeroes it. */
void device_process_finish(struct device_process *process);
void device_process_list_finish(struct device_process_list *list);

#endif
