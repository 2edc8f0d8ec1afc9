/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the mark of a lease (model/lease_mark.h) from the environment that a process was started
 * with.
 */
#ifndef PROC_READER_PROCESS_MARK_H
#define PROC_READER_PROCESS_MARK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/text.h"
#include "model/lease_mark.h"
#include "proc_reader/proc_files.h"

enum process_mark {
    PROCESS_MARK_FOUND,
    PROCESS_MARK_NONE,
    PROCESS_MARK_STARTING,   /* it is inside execve(), and may carry one afterwards */
    PROCESS_MARK_UNREADABLE, /* it is gone, or has no environment, or one that may not be read */
};

/* Reads the mark. Waits for a process inside execve(): at most *tries times for 20 us, and
 * subtracts each wait from *tries. The mark points into the environment. May block. */
enum process_mark process_mark_read(const struct proc_files *files, pid_t pid, int *tries,
                                    struct text *environment, struct lease_mark *ret_mark);

/* Returns the value of a variable in an environment, or NULL. */
const char *process_mark_variable(const struct text *environment, const char *name);

/* Returns whether a process that carries no mark may get one: a container starts with it, and it is
 * still the container's runtime. The process that asked for the container may have ended by then,
 * as podman run --detach does. `since`: the start of the oldest process that matters, in ns since
 * boot. May block. */
bool process_mark_may_follow(const struct proc_files *files, pid_t pid, uint64_t since);

#endif
