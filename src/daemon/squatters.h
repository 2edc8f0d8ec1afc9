/* SPDX-License-Identifier: Apache-2.0
 *
 * Squatters: processes that use a device without a lease on it. While there is one the device is
 * not granted (BLOCK_SQUATTED), unless the rules ignore them. What only draws on a screen, and what
 * looks after the devices, does not count.
 */
#ifndef DAEMON_SQUATTERS_H
#define DAEMON_SQUATTERS_H

#include "daemon/pool.h"

int squatters_init(struct pool *pool, struct berth_error *error);
void squatters_finish(struct pool *pool);

/* The processes on the slot's device, or whose they are, have changed: says of each whether it
 * squats, and blocks or unblocks the device; names what a lease that is over left on it. Unblocking
 * grants it, where the engine is not paused: the caller settles the pool. */
void squatters_judge(struct pool *pool, uint32_t slot);
/* Of all slots, after a look. Who squats is watched, so that its end is noticed at once. */
void squatters_judge_all(struct pool *pool);

/* Whether a program of this command line never counts, by its name; `more` are those that the
 * configuration adds. */
bool squatters_excepts(const char *command, const struct string_list *more);

#endif
