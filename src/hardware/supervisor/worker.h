/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that does steps, one after the other: whatever a driver or a library does to it, the
 * supervisor goes on.
 */
#ifndef HARDWARE_SUPERVISOR_WORKER_H
#define HARDWARE_SUPERVISOR_WORKER_H

#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"

/* Forks one that takes steps from and gives results to a socket (probe/probe_channel.h):
 * *ret_socket, the caller's to close, which ends it. It is killed when the caller ends. `tables`
 * ends in NULL. Returns its process id, which the caller waits for, or a negative errno. The caller
 * must have one thread only. */
int worker_start(const struct sysroot *root, const struct vendor_table *const *tables,
                 int *ret_socket);

#endif
