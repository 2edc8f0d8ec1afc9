/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds running containers by their ids, from the control groups of processes.
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
    uint64_t started; /* from process_stat_started() */
    char *container;  /* its id or name (base/system/container.h) */
};

struct container_process_list {
    VECTOR_OF(struct container_process);
};

void container_lookup_finish(struct container_process_list *list);

/* Chooses the first process of the container `wanted`: a whole id, a unique prefix with at least
 * four digits, or the name of a machine (systemd-nspawn). The first process is the oldest one
 * whose parent is outside the container. Fails with BERTH_ERROR_NOT_FOUND, also if several
 * containers match. Reads only its arguments. */
int container_lookup_choose(const struct container_process_list *list, const char *wanted,
                            pid_t *ret_pid, struct berth_error *error);

/* Reads the machine's processes from /proc and chooses the container's first process. */
int container_lookup_first_process(const char *wanted, pid_t *ret_pid, struct berth_error *error);

#endif
