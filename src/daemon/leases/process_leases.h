/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns the processes on devices to the pool's leases, by the rules of
 * processes/process_attribution.h. Nothing here blocks.
 */
#ifndef DAEMON_LEASES_PROCESS_LEASES_H
#define DAEMON_LEASES_PROCESS_LEASES_H

#include <stdbool.h>
#include <stdint.h>

struct device_list;
struct device_process;
struct pool;

/* Sets the leases of the processes in a report. Without memory, some have none. */
void process_leases_join(struct pool *pool, struct device_list *found);

/* Does it again for the processes of the slot's last report, because leases came or went. */
void process_leases_join_again(struct pool *pool, uint32_t slot);

/* Returns whether a lease that is over left the process behind. */
bool process_leases_lingers(const struct pool *pool, const struct device_process *process);

#endif
