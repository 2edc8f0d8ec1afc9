/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes by pid, without confusing a process with a later one of the same pid.
 */
#ifndef DAEMON_CORE_PIDFD_H
#define DAEMON_CORE_PIDFD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens a pidfd, close-on-exec. Returns -1 if the process has ended. */
int pidfd_open_process(pid_t pid);

/* Opens the pidfd of the process at the other end of a connected socket. Returns -1 if it has
 * ended. */
int pidfd_open_peer(int connection, pid_t pid);

/* Returns whether the process has ended. */
bool pidfd_has_ended(int descriptor);

/* Returns whether the process is a zombie, so that its pid is still its own. */
bool pidfd_is_zombie(int descriptor);

/* Returns the exit code of a process that was waited for, 128 + N for a death by signal N as in a
 * shell, or -1 if the kernel does not tell. */
int pidfd_exit_code(int descriptor);

/* Finds the real uid of a process. Returns false if it has ended, or before Linux 6.13. */
bool pidfd_user(int descriptor, uint32_t *ret_uid);

/* As pidfd_user(). Before Linux 6.13 it finds the effective uid: the owner of the process's
 * directory in /proc, of which nothing else is read, so that this never blocks. Returns false if
 * the process has ended, or if /proc hides it. */
bool pidfd_find_user(int descriptor, pid_t pid, uint32_t *ret_uid);

/* Sends a signal; does nothing if the process has ended. */
void pidfd_signal(int descriptor, int number);

#endif
