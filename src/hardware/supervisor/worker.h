/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker process. It executes steps in order. If a driver or library hangs or crashes it, the
 * supervisor continues.
 */
#ifndef HARDWARE_SUPERVISOR_WORKER_H
#define HARDWARE_SUPERVISOR_WORKER_H

#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"

/* Forks a worker that reads steps from a socket and writes results to it (probe/probe_channel.h).
 * The caller closes *ret_socket, which ends the worker. The kernel kills the worker if the caller
 * ends. `tables` ends with NULL. Returns the worker's process id, which the caller reaps, or a
 * negative errno. The caller must have only one thread. */
int worker_start(const struct sysroot *root, const struct vendor_table *const *tables,
                 int *ret_socket);

#endif
