/* SPDX-License-Identifier: Apache-2.0
 *
 * A report of what the supervisor knows.
 */
#ifndef HARDWARE_SUPERVISOR_BUILD_REPORT_H
#define HARDWARE_SUPERVISOR_BUILD_REPORT_H

#include <stdbool.h>

#include "hardware/supervisor/device_cache.h"
#include "model/machine_report.h"

/* Makes the report, also of what is still being looked at: that counts as not answering. Without
 * processes nobody is told who uses the devices. Returns 0 or BERTH_ERROR_MEMORY; *ret_report is
 * untouched then, else the caller finishes it. */
int build_report(const struct device_cache *cache, bool without_processes,
                 struct machine_report *ret_report);

#endif
