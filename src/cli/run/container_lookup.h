/* SPDX-License-Identifier: Apache-2.0
 *
 * Running containers by their ids, found by the control groups of their processes.
 */
#ifndef CLI_RUN_CONTAINER_LOOKUP_H
#define CLI_RUN_CONTAINER_LOOKUP_H

#include <berth/error.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vector.h"

/* A process in a container. */
struct container_process {
    pid_t pid;
    pid_t parent;
    uint64_t started; /* process_stat_started */
    char *container;  /* base/system/container.h */
};

struct container_process_list {
    VECTOR_OF(struct container_process);
};

void container_lookup_finish(struct container_process_list *list);

/* The first process of the container that is named: by its whole id, by four or more digits that no
 * other's id begins with, or by its name where it is a machine. It is the one whose parent is not
 * in the container; of several, the oldest. Fails with BERTH_ERROR_NOT_FOUND, also when several
 * containers are meant. Pure. */
int container_lookup_choose(const struct container_process_list *list, const char *wanted,
                            pid_t *ret_pid, struct berth_error *error);

/* Looks through the machine's processes for it. */
int container_lookup_first_process(const char *wanted, pid_t *ret_pid, struct berth_error *error);

#endif
