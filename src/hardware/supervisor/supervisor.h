/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-probe itself: takes requests (probe/probe_messages.h), has workers look, and answers in
 * time with what is known, however the hardware behaves. It never touches the hardware.
 *
 *     supervisor.c  requests, and what is to be done for them
 *     known.c       what is known of devices from one request to the next
 *     assemble.c    the report
 *     crew.c        workers, and what they are at
 *     worker.c      what a worker does
 *     steps.c       what goes between the two
 */
#ifndef HARDWARE_SUPERVISOR_SUPERVISOR_H
#define HARDWARE_SUPERVISOR_SUPERVISOR_H

#include <berth/error.h>

#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"

/* Serves whoever is at the other end of the stream socket until it is closed; consumes it. `tables`
 * ends in NULL. Returns 0, or BERTH_ERROR_MEMORY or _IO. The process must have one thread only. */
int supervisor_run(int socket, const struct sysroot *root, const struct vendor_table *const *tables,
                   struct berth_error *error);

#endif
