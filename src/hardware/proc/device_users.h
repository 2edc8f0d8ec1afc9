/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the processes that use each device, in /proc.
 */
#ifndef HARDWARE_PROC_DEVICE_USERS_H
#define HARDWARE_PROC_DEVICE_USERS_H

#include <berth/error.h>
#include <stdint.h>

#include "hardware/findings.h"
#include "hardware/proc/proc_ancestors.h"
#include "hardware/proc/proc_watch.h"
#include "hardware/sysfs/sysroot.h"

/* The state kept from scan to scan: the busy time of each engine. */
struct device_users;

int device_users_create(struct device_users **ret_uses, struct berth_error *error);
void device_users_destroy(struct device_users *uses);

/* Scans the open files of all visible processes. Adds one device to the findings for each DRM
 * device, open or not. The ids of these devices have no meaning. Each device has:
 *
 *  - its PCI address (drm-pdev) and its path if known, and as nodes its device files
 *    (/dev/dri/renderD128) that have the same names here. A partition of a GPU has its
 *    own nodes and the PCI address of the whole GPU;
 *  - its processes by pid, with their memory as in fdinfo.h. `draws` is set if the
 *    process has no /dev/kfd open, which matters for AMD's GPUs only. A client
 *    (drm-client-id) that several descriptors share counts once, for the process with
 *    the lowest pid. The other processes use the device as well, but none of its memory
 *    is known to be theirs;
 *  - its utilization since the previous scan, that of its busiest class of engines. It is
 *    known from the second scan on, if that is at least 50 ms later, if every process of
 *    the machine is visible (as root, outside of containers), and if every client can be
 *    told apart. A device that no process has open is idle. The work of clients that have
 *    ended is not included.
 *
 * Names of files prove nothing: a descriptor counts if the kernel says that it is a DRM device, or
 * if it is the same device file that has its name here.
 *
 * For the processes to avoid (`watch`, NULL: none), only the kernel's facts about the descriptors
 * are read (fdinfo). Such processes count as computing.
 *
 * Fails with BERTH_ERROR_MEMORY, or another code if /proc cannot be read. */
int device_users_scan(struct device_users *uses, const struct sysroot *root,
                      const struct proc_watch *watch, struct findings *findings,
                      struct berth_error *error);

/* Fills in the known facts about the process with this pid: uid, command, container, start, the
 * lease that its environment names, and its ancestors. The command is the command line with blanks
 * between its arguments; control characters and invalid UTF-8 are replaced, and it has at most
 * PROCESS_TEXT_MAX bytes. A process without a command line has its name instead. The container is
 * the id that docker, containerd, podman, CRI-O, LXC or systemd-nspawn put into the path of its
 * cgroup. The uid is the effective one.
 *
 * If the process is undecided, only the kernel's own figures are read: uid, name, container and
 * ancestors. Otherwise this may block; `watch` shows at which process (NULL: not watched). Fails
 * with BERTH_ERROR_NOT_FOUND if there is no such process, or _MEMORY. */
int proc_describe_process(const struct sysroot *root, const struct proc_watch *watch,
                          struct ancestor_budget *budget, struct device_process *process,
                          struct berth_error *error);

#endif
