/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes by number, without ever mistaking one for a later one of the same number.
 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "spec/configuration/configuration.h"

/* A descriptor of the process, close-on-exec, if it is the one that began then
 * (process_stat_started; 0: whichever it is); -1: it is gone. */
int process_open(pid_t pid, uint64_t started);

/* Of whoever is on the other side of a connected socket; -1: it is gone. */
int process_open_peer(int connection, pid_t pid);

/* Whether the process has ended. */
bool process_has_ended(int descriptor);

/* The exit code of a process that has ended, as a shell has it: 128 and the signal where one ended
 * it. `pid` and `started` are the descriptor's. -1: it cannot be known here. */
int process_exit_code(int descriptor, pid_t pid, uint64_t started);

/* Sends a signal; a process that is gone is fine. */
void process_signal(int descriptor, int number);

/* Whose the process is: its real user, and all of its groups, which the caller finishes. Returns 0,
 * or BERTH_ERROR_NOT_FOUND or _MEMORY. */
int process_credentials(pid_t pid, uint32_t *ret_uid, struct number_list *ret_groups);

#endif
