/* SPDX-License-Identifier: Apache-2.0
 *
 * Who uses which device, by /proc.
 */
#ifndef HARDWARE_USES_H
#define HARDWARE_USES_H

#include <berth/error.h>
#include <stdint.h>

#include "hardware/root.h"
#include "hardware/sight.h"

/* What is kept from scan to scan: how long each engine had been busy. Zeroed memory is none yet. */
struct uses;

int uses_create(struct uses **ret_uses, struct berth_error *error);
void uses_destroy(struct uses *uses);

/* Looks through the open files of all processes that we may see. Adds one device to the sight for
 * each DRM device that is open somewhere: its PCI address (drm-pdev) where it has one, its device
 * files (/dev/dri/renderD128) as nodes, its processes with pid and memory (drm-resident-*,
 * drm-memory-* of the device's own memory), and its utilisation since the scan before
 * (drm-engine-*), where that is known: from the second scan on, and only when we may see every
 * process. The ids are of no meaning. A client that has several descriptors (drm-client-id) counts
 * once. Processes that end meanwhile are left out. */
int uses_scan(struct uses *uses, const struct root *root, struct sight *sight,
              struct berth_error *error);

/* Fills in uid, command and container of the process with this pid, as far as is known: the command
 * line with blanks between its parts, control characters and bytes that are no UTF-8 replaced, at
 * most PROCESS_TEXT_LONGEST bytes; else its name. The container is the id that docker, containerd,
 * podman, CRI-O or LXC put into the path of its cgroup. Fails with BERTH_ERROR_NOT_FOUND when there
 * is no such process, or _MEMORY. */
int uses_describe(const struct root *root, struct device_process *process,
                  struct berth_error *error);

#endif
