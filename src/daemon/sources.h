/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the pool's devices and rules come from.
 */
#ifndef DAEMON_SOURCES_H
#define DAEMON_SOURCES_H

#include "daemon/pool.h"

/* Makes the engine of the inventory's devices (without one there are none) by the rules of the
 * configuration. */
int sources_open(struct pool *pool, struct berth_error *error);

/* Reads the configuration again; a bad one is logged and the old rules stay. How many tenants
 * a device may have and how waiting raises a claim are rules of the next start. */
void sources_reload(struct pool *pool);

#endif
