/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals the processes of a lease on behalf of the lease's user. The daemon may signal every
 * process (CAP_KILL), but a process of the lease may have become another user's program since it
 * was found, for example root's by sudo. So its user is checked before each signal.
 */
#ifndef DAEMON_PROCESSES_SIGNAL_RIGHT_H
#define DAEMON_PROCESSES_SIGNAL_RIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/system/subordinate_uids.h"

/* The right to signal processes of the user, and of the user's subordinate uids. Root's right
 * covers all processes. */
struct signal_right {
    uint32_t uid;
    const struct subordinate_uids *ranges; /* NULL: no user has subordinate uids */
};

bool signal_right_covers(const struct signal_right *right, uint32_t uid);

/* Sends a signal if the right covers the process. If it does not, sends none, sets *ret_uid to the
 * process's user, and returns false. Returns true for a process that has ended. */
bool signal_right_use(const struct signal_right *right, pid_t pid, int descriptor, int number,
                      uint32_t *ret_uid);

#endif
