/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares a new process before exec, so that it inherits nothing by accident. These functions use
 * only system calls, because the process may share the parent's memory, and another thread of the
 * parent may hold any lock.
 */
#ifndef BASE_SYSTEM_CHILD_SETUP_H
#define BASE_SYSTEM_CHILD_SETUP_H

/* Resets all signals: none is blocked, ignored or handled. */
void child_setup_reset_signals(void);

/* Closes all descriptors from `first` on. */
void child_setup_close_from(int first);

/* Makes `input` (-1: empty) the standard input, and `output` the standard output and error. Moves
 * *kept to descriptor 3, which exec closes. Closes all other descriptors. Returns 0, or -1 with
 * errno; *kept is the descriptor's current number in both cases. */
int child_setup_descriptors(int input, int output, int *kept);

#endif
