/* SPDX-License-Identifier: Apache-2.0
 *
 * The process of a control daemon: started by this daemon or by an earlier one, and watched.
 */
#ifndef DAEMON_MPS_MPS_PROCESS_H
#define DAEMON_MPS_MPS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/loop.h"
#include "daemon/mps/mps_launch.h"
#include "daemon/mps/mps_query.h"

struct mps_process {
    struct loop *loop;
    struct mps_child child;
    uint64_t started;    /* in clock ticks since boot; 0: unknown */
    bool is_unconfirmed; /* the pid is an earlier daemon's, and may be another process's now */
    struct watch end;    /* readable after its end; descriptor -1: not watched */
    struct watch line;   /* readable when it has executed the program; -1: likewise */
};

/* Initialises a process that does not exist. The owner sets the callbacks of both watches, which
 * must call mps_process_ended() and mps_process_has_begun(). */
void mps_process_init(struct mps_process *process, struct loop *loop);

struct mps_process_order {
    struct launcher *launcher;
    const char *program;
    const char *base; /* the directory for all users */
    struct mps_target target;
    uint64_t mark; /* the id in its mark (model/lease_mark.h) */
};

/* Makes a process that waits. Returns 0 or an errno. */
int mps_process_make(struct mps_process *process, const struct mps_process_order *order);
/* Lets it execute the program. */
void mps_process_let_go(struct mps_process *process);
/* Ends a process that waits. */
void mps_process_undo(struct mps_process *process);

/* Watches the process of an earlier daemon, whose pid and start are set. Returns false if no
 * process has the pid. */
bool mps_process_take_over(struct mps_process *process);
/* Compares the start of the process that has the pid now (0: none has). Returns false if it is
 * another process, which is not watched any more. */
bool mps_process_confirm(struct mps_process *process, uint64_t started);

/* Stops watching `line`, which is readable. Returns whether the process has executed the program;
 * otherwise its end says why. */
bool mps_process_has_begun(struct mps_process *process);
/* Stops watching its end, and appends a description of it. */
void mps_process_ended(struct mps_process *process, struct text *out);

/* Returns whether it runs. A process that may be another one does not count. */
bool mps_process_is_running(const struct mps_process *process);

/* Closes its descriptors. It may still run. */
void mps_process_forget(struct mps_process *process);

#endif
