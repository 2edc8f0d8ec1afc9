/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor of berth-probe. Takes requests (probe/probe_messages.h), gives tasks to workers,
 * and answers by the deadline with the facts known by then, even if a driver hangs. It never
 * touches the hardware.
 *
 *     supervisor.c    requests and answers
 *     task_flow.c     runs the tasks of a request and applies their results
 *     task_start.c    starts tasks
 *     device_cache.c  the facts kept from one request to the next
 *     build_report.c  builds the report from the cache
 *     workers.c       runs the worker processes
 *     worker.c        a worker process
 *     task_codec.c    the packets between the supervisor and a worker
 */
#ifndef HARDWARE_SUPERVISOR_SUPERVISOR_H
#define HARDWARE_SUPERVISOR_SUPERVISOR_H

#include <berth/error.h>

#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"

/* Serves the client at the other end of the stream socket until the client closes it. Closes the
 * socket. `tables` ends with NULL. Returns 0, BERTH_ERROR_MEMORY, _SYNTAX or _LIMIT. Blocks; the
 * process must have only one thread, because workers are forked. */
int supervisor_run(int socket, const struct sysroot *root, const struct vendor_table *const *tables,
                   struct berth_error *error);

#endif
