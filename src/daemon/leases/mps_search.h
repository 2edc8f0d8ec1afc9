/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the processes of MPS control daemons (mps/mps.h) through berth-reader. Those of one carry a
 * mark with an id that no lease has, or descend from such a process.
 */
#ifndef DAEMON_LEASES_MPS_SEARCH_H
#define DAEMON_LEASES_MPS_SEARCH_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct leftover_process;
struct pool;

/* Allocates pool->mps_searches. Fails with BERTH_ERROR_MEMORY. */
int mps_search_init(struct pool *pool, struct berth_error *error);
/* Frees them; pool->mps must be gone. */
void mps_search_finish(struct pool *pool);

/* The callbacks of struct mps_events; the context is the pool. */
bool mps_search_begin(void *context, uint32_t slot, uint32_t uid, pid_t root);
void mps_search_signal(void *context, uint32_t slot, int number);
void mps_search_identify(void *context, uint32_t slot, uint32_t uid, pid_t pid);
void mps_search_forget(void *context, uint32_t slot);

/* Calls `call` for each process that was found and still runs. */
void mps_search_each(const struct pool *pool, uint32_t slot,
                     void (*call)(void *context, const struct leftover_process *process),
                     void *context);

#endif
