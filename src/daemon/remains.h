/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of a lease: those of its user, or of root, that carry its id and this pool's socket
 * in the environment that they were started with, and what descends from them. Those in a
 * container are of who answers for it (base/system/process_container.h), whatever their uids. One
 * that wipes its environment and leaves its parents is not known. What may yet show to be one of
 * them (daemon/mark.h) is waited for, a few seconds at most. What another user starts with
 * somebody's lease in its environment is nothing to that lease, which would have to wait for its
 * end.
 */
#ifndef DAEMON_REMAINS_H
#define DAEMON_REMAINS_H

#include "daemon/pool.h"

struct remains;

struct id_list {
    VECTOR_OF(uint64_t);
};

/* Looks for the processes of these leases. `after` is a process that is older than all of them and
 * was there not long ago, 0: unknown; it saves looking at every process. NULL: there is none (or no
 * memory to watch it). `root` is one that is of them without saying so; 0: none. `gone` is called
 * when the last of them has ended and none came after it. */
struct remains *remains_find(struct pool *pool, const struct id_list *leases, pid_t after,
                             pid_t root, void (*gone)(struct guard *guard), struct guard *guard);
void remains_free(struct pool *pool, struct remains *remains);

/* Signals all of them; SIGKILL also those that are found later. */
void remains_signal(struct remains *remains, int number);

/* Looks again and adds who is new. */
void remains_refresh(struct pool *pool, struct remains *remains);

#endif
