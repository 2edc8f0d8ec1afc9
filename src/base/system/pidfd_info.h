/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the kernel for facts of a process by its pidfd (PIDFD_GET_INFO, Linux 6.13). Unlike the
 * files below /proc/PID, this never blocks, whatever the process does. Any thread may call it.
 */
#ifndef BASE_SYSTEM_PIDFD_INFO_H
#define BASE_SYSTEM_PIDFD_INFO_H

#include <linux/ioctl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The kernel's struct pidfd_info in its first version; the C library's headers may be older. */
struct pidfd_record {
    uint64_t mask;
    uint64_t control_group;
    uint32_t pid;
    uint32_t group_leader;
    uint32_t parent;
    uint32_t real_uid;
    uint32_t real_gid;
    uint32_t effective_uid;
    uint32_t effective_gid;
    uint32_t saved_uid;
    uint32_t saved_gid;
    uint32_t file_uid;
    uint32_t file_gid;
    int32_t exit_code;
};

#define PIDFD_INFO_REQUEST _IOWR(0xFF, 11, struct pidfd_record)

/* Facts of a process that has not been reaped. Ids are those of this process's namespaces. */
struct pidfd_facts {
    pid_t parent; /* 0: outside of this pid namespace */
    uint32_t real_uid;
    uint32_t effective_uid;
    uint32_t saved_uid;
    uint32_t real_gid;
};

/* Returns false when the process was reaped, or the kernel is older. */
bool pidfd_info_read(int process, struct pidfd_facts *ret_facts);

/* Finds the wait status of a process that was reaped (Linux 6.15). */
bool pidfd_info_read_status(int process, int *ret_status);

#endif
