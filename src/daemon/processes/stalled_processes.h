/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that stalled a reader of /proc: each is remembered by its pidfd until it ends.
 */
#ifndef DAEMON_PROCESSES_STALLED_PROCESSES_H
#define DAEMON_PROCESSES_STALLED_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/optional.h"
#include "daemon/core/loop.h"

struct reader_numbers;

struct stalled_process {
    pid_t pid;
    uint32_t account;             /* the user that it counts for */
    int64_t since;                /* the loop's time of the stall */
    struct optional_number owner; /* the process's uid at that time */
};

struct stalled_processes {
    struct loop *loop;
    struct list list;
    void (*ended)(void *context); /* one of them, from the loop */
    void *context;
};

void stalled_processes_init(struct stalled_processes *processes, struct loop *loop,
                            void (*ended)(void *context), void *context);
void stalled_processes_finish(struct stalled_processes *processes);

/* Remembers a process, whose pidfd it takes. Returns it, or NULL without memory. */
const struct stalled_process *stalled_processes_add(struct stalled_processes *processes, pid_t pid,
                                                    int descriptor, uint32_t account);

bool stalled_processes_has(const struct stalled_processes *processes, pid_t pid);

/* Returns how many count for this user. */
size_t stalled_processes_count(const struct stalled_processes *processes, uint32_t account);

/* Replaces the numbers by the pids, as many as a request may have. */
void stalled_processes_list(const struct stalled_processes *processes,
                            struct reader_numbers *ret_pids);

void stalled_processes_each(const struct stalled_processes *processes,
                            void (*call)(void *context, const struct stalled_process *process),
                            void *context);

#endif
