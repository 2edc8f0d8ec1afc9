/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes rights away from a process that reads the hardware or /proc, for good. The kernel enforces
 * it, so it also holds for code that an attacker runs in the process.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <berth/error.h>

enum sandbox_profile {
    /* For a process that loads a driver's library or reads a driver's files: no capabilities, and
     * no system call that controls other processes, the machine or mounts, starts a program,
     * connects to a service, or changes the user. Its sockets are local streams, or of netlink.
     * With Landlock, it cannot open the memory of other processes of its user, and (from version 6
     * of Landlock on) cannot signal them. Without Landlock, it can write to the memory of those
     * that do not hide (sandbox_hide()). It can write its user's files, and use the ioctls of all
     * devices that its user may open. */
    SANDBOX_DRIVER,

    /* For a process that reads /proc: of its capabilities it keeps CAP_SYS_PTRACE and
     * CAP_DAC_READ_SEARCH, which the environment and the descriptors of other users' processes
     * require. It can only read files, query namespaces and pidfds, and use the descriptors that it
     * has. It can neither open a file for writing nor create a process, a socket or executable
     * memory. Opening the file of a device may have effects even so: some drivers act on it. */
    SANDBOX_PROC,
};

/* Hides the memory and the descriptors of this process from other processes of its user: only root
 * can trace it, and it leaves no core dump. Forked children inherit this. */
void sandbox_hide(void);

/* Hides this process, and lets it keep only those capabilities that a child needs for SANDBOX_PROC.
 * They are not in effect in this process. Programs that it starts get no capabilities. Fails with
 * BERTH_ERROR_PERMISSION. */
int sandbox_enter_supervisor(struct berth_error *error);

/* Hides this process and applies the profile. It cannot be undone, and forked children inherit it.
 * The process must have one thread. Forbidden calls fail with EPERM; a forbidden connect() fails
 * with ECONNREFUSED and a forbidden socket() with EAFNOSUPPORT, because libraries expect that.
 * Calls of other architectures end the process. On failure the process has no capabilities and may
 * have no filter. Fails with BERTH_ERROR_PERMISSION, with _MEMORY, or with _IO if the kernel has no
 * seccomp filters. */
int sandbox_enter(enum sandbox_profile profile, struct berth_error *error);

#endif
