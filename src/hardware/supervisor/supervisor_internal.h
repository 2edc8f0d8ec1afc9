/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the supervisor for supervisor.c. task_flow.c runs the tasks that a request needs
 * (task_start.h) and applies their results to the device cache; build_report.c builds a report from
 * the cache.
 *
 * For each vendor: list its candidates and read each of them (only vendors that have candidates,
 * see hardware/vendors.h), list its devices, read each device, find their links. Beside that: scan
 * /proc for processes that use a device, and describe each of these processes.
 */
#ifndef HARDWARE_SUPERVISOR_SUPERVISOR_INTERNAL_H
#define HARDWARE_SUPERVISOR_SUPERVISOR_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/supervisor/device_cache.h"
#include "hardware/supervisor/stalled.h"
#include "hardware/supervisor/workers.h"
#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"
#include "model/machine/machine_report.h"
#include "probe/probe_messages.h"

struct task_flow {
    struct workers workers;
    struct device_cache cache;
    struct stalled_list stalled;  /* processes that readers of /proc do not ask */
    unsigned scans;               /* of the current request */
    struct probe_request request; /* the current one */
    uint64_t serial;              /* counts the requests */
    int64_t now;                  /* clock_now() of this turn, set by the caller */
    bool lost;                    /* memory ran out; the supervisor must end */
};

/* Initialises the flow in place; it must not move afterwards. `tables` ends with NULL. */
void task_flow_init(struct task_flow *flow, const struct sysroot *root,
                    const struct vendor_table *const *tables);
/* Kills all workers. */
void task_flow_finish(struct task_flow *flow);

/* Starts the tasks for flow->request, which the caller has filled in. */
void task_flow_start_request(struct task_flow *flow);

/* Applies the results that have arrived and starts the tasks that follow from them. */
void task_flow_run(struct task_flow *flow);

/* Returns whether every task that the request waits for has ended. The request does not wait for a
 * task that was stuck when the request arrived. */
bool task_flow_is_done(struct task_flow *flow);

/* Notes that memory ran out if `code` is an error. */
void task_flow_note_error(struct task_flow *flow, int code);

/* Builds the report. A device whose read has not ended counts as not answering. With
 * `without_processes` the devices have no processes. Returns 0 or BERTH_ERROR_MEMORY; *ret_report
 * is unchanged then, otherwise the caller finishes it. */
int build_report(const struct device_cache *cache, bool without_processes,
                 struct machine_report *ret_report);

#endif
