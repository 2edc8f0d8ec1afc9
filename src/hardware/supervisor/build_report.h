/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a report from the device cache.
 */
#ifndef HARDWARE_SUPERVISOR_BUILD_REPORT_H
#define HARDWARE_SUPERVISOR_BUILD_REPORT_H

#include <stdbool.h>

#include "hardware/supervisor/device_cache.h"
#include "model/machine/machine_report.h"

/* Builds the report. A device whose read has not ended counts as not answering. With
 * `without_processes` the devices have no processes. Returns 0 or BERTH_ERROR_MEMORY; *ret_report
 * is unchanged then, otherwise the caller finishes it. */
int build_report(const struct device_cache *cache, bool without_processes,
                 struct machine_report *ret_report);

#endif
