/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of a lease that asked for its end: they get their answer, and SIGKILL if they still run
 * after a while.
 */
#ifndef DAEMON_PROCESSES_SPARED_PROCESSES_H
#define DAEMON_PROCESSES_SPARED_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/core/loop.h"
#include "daemon/processes/signal_right.h"

struct spared_processes {
    struct loop *loop;
    struct list list;
};

void spared_processes_init(struct spared_processes *processes, struct loop *loop);

/* Kills those that still run. */
void spared_processes_finish(struct spared_processes *processes);

/* Adds a process, unless it is there already. It is killed at `at`, the loop's time, if the right
 * covers it then. Takes the pidfd. */
void spared_processes_add(struct spared_processes *processes, const struct signal_right *right,
                          pid_t pid, int descriptor, int64_t at);

bool spared_processes_has(const struct spared_processes *processes, pid_t pid);

#endif
