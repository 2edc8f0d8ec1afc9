/* SPDX-License-Identifier: Apache-2.0
 *
 * Who uses which device, by /proc.
 */
#ifndef HARDWARE_PROC_DEVICE_USERS_H
#define HARDWARE_PROC_DEVICE_USERS_H

#include <berth/error.h>
#include <stdint.h>

#include "hardware/findings.h"
#include "hardware/sysfs/sysroot.h"

/* What is kept from scan to scan: how long each engine had been busy. Zeroed memory is none yet. */
struct device_users;

int device_users_create(struct device_users **ret_uses, struct berth_error *error);
void device_users_destroy(struct device_users *uses);

/* Looks through the open files of all processes that we may see. Adds one device to the sight for
 * each DRM device, open or not, whose ids are of no meaning:
 *  - its PCI address (drm-pdev) and its path where they are known, its device files
 *    (/dev/dri/renderD128) as nodes, as far as they go by the same names here. A partition of a GPU
 *    has nodes of its own and the PCI address of the whole;
 *  - its processes by pid, with memory as fdinfo.h has it; `draws` where the process has no
 *    /dev/kfd open, which says something of AMD's GPUs only. A client (drm-client-id) that several
 *    descriptors have open counts once, for the process with the lowest pid; the others that have
 *    it open use the device, too, but none of its memory that is known to be theirs;
 *  - its utilisation since the scan before, of its busiest class of engines. It is known from the
 *    second scan on, if that is at least 50 ms later, and only when every process of the machine
 *    can be seen (as root, outside of containers) and every client told apart. What is open
 *    nowhere is idle. What a client did that is gone by now is not in it.
 * Files are no proof: a descriptor counts if the kernel says that it is a DRM device, or if it is
 * the very device file that goes by its name here. Fails with BERTH_ERROR_MEMORY, or when /proc
 * cannot be read. */
int device_users_scan(struct device_users *uses, const struct sysroot *root,
                      struct findings *findings, struct berth_error *error);

/* Fills in uid, command, container, start and what it says of a lease of the process with this pid,
 * as far as is known: the command line with blanks between its parts, control characters and bytes
 * that are no UTF-8 replaced, at most PROCESS_TEXT_MAX bytes; else its name. The container is
 * the id that docker, containerd, podman, CRI-O, LXC or systemd-nspawn put into the path of its
 * cgroup. The uid is the effective one. Fails with BERTH_ERROR_NOT_FOUND when there is no such
 * process, or _MEMORY. */
int proc_describe_process(const struct sysroot *root, struct device_process *process,
                          struct berth_error *error);

#endif
