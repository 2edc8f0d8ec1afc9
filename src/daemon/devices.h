/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at the hardware taken into the pool.
 */
#ifndef DAEMON_DEVICES_H
#define DAEMON_DEVICES_H

#include "daemon/pool.h"
#include "model/machine/machine_report.h"

/* Devices come, go, fall ill and recover as the report says; it is empty afterwards. What the next
 * daemon has to know is in the journal. The engine is paused from here on: the caller resumes it.
 * Fails as engine_report. */
int devices_take(struct pool *pool, struct machine_report *report, struct berth_error *error);

#endif
