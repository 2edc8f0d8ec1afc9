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
struct contained {
    pid_t pid;
    pid_t parent;
    uint64_t started; /* process_stat_started */
    char *container;  /* base/system/container.h */
};

struct contained_list {
    VECTOR_OF(struct contained);
};

void contained_list_finish(struct contained_list *list);

/* The first process of the container that is named: by its whole id, by four or more digits that no
 * other's id begins with, or by its name where it is a machine. It is the one whose parent is not
 * in the container; of several, the oldest. Fails with BERTH_ERROR_NOT_FOUND, also when several
 * containers are meant. Pure. */
int contained_list_choose(const struct contained_list *list, const char *wanted, pid_t *ret_pid,
                          struct berth_error *error);

/* Looks through the machine's processes for it. */
int container_first_process(const char *wanted, pid_t *ret_pid, struct berth_error *error);

#endif
