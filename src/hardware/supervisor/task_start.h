/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts the tasks of a request, for task_flow.c. A task that waits or runs is not started again.
 */
#ifndef HARDWARE_SUPERVISOR_TASK_START_H
#define HARDWARE_SUPERVISOR_TASK_START_H

struct cached_device;
struct cached_process;
struct cached_vendor;
struct finding_list;
struct step;
struct task;
struct task_flow;

/* The maximum number of scans for one request. Each one but the last may be stalled by another
 * user's process; the last one reads only the kernel's own figures. */
enum { TASK_START_SCANS_MAX = 32 };

void task_start(struct task_flow *flow, struct task *task, const struct step *step);

/* Starts to read a device or a candidate, unless it hung or crashed a short time ago. */
void task_start_read(struct task_flow *flow, struct cached_device *cached);
/* Starts to read the requested devices of a vendor. */
void task_start_reads(struct task_flow *flow, struct cached_vendor *vendor);

/* Starts to list the devices once every candidate has answered or is stuck. */
void task_start_list(struct task_flow *flow, struct cached_vendor *vendor);

/* Starts to find the links if the devices have changed, once every device has been read or is
 * stuck. */
void task_start_links(struct task_flow *flow, struct cached_vendor *vendor);

/* Starts to scan /proc without the processes that stalled a worker. */
void task_start_scan(struct task_flow *flow);

/* Starts to describe a process, unless even the kernel's own figures of it have stalled a
 * reader. */
void task_start_description(struct task_flow *flow, struct cached_process *process);
/* Starts to describe the processes on these devices, if the request wants processes. */
void task_start_describing(struct task_flow *flow, const struct finding_list *list);

#endif
