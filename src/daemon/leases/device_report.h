/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies reports about the hardware to the pool. Nothing here blocks.
 */
#ifndef DAEMON_LEASES_DEVICE_REPORT_H
#define DAEMON_LEASES_DEVICE_REPORT_H

#include <berth/error.h>

#include "model/machine/machine_report.h"

struct machine_report;
struct pool;

/* Applies a report, which is empty afterwards: adds devices, marks them as gone or sick, and finds
 * the leases of their processes. Writes the changes that the next daemon needs to the journal.
 * Leaves the engine paused; the caller resumes it. Fails as engine_apply_report(). */
int device_report_apply(struct pool *pool, struct machine_report *report,
                        struct berth_error *error);

#endif
