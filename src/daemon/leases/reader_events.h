/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of /proc as the pool sees them: what they report is logged.
 */
#ifndef DAEMON_LEASES_READER_EVENTS_H
#define DAEMON_LEASES_READER_EVENTS_H

#include <berth/error.h>

struct pool;

/* Makes pool->readers, which start with the first turn of the loop. Fails with BERTH_ERROR_MEMORY.
 */
int reader_events_init(struct pool *pool, struct berth_error *error);

/* Ends the readers, once no module asks them any more. */
void reader_events_finish(struct pool *pool);

#endif
