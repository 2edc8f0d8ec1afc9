/* SPDX-License-Identifier: Apache-2.0
 *
 * What a new process does before it becomes a program, so that nothing of ours is left in it. Only
 * system calls: it may share our memory, and another thread of ours may hold any lock.
 */
#ifndef BASE_SYSTEM_CHILD_SETUP_H
#define BASE_SYSTEM_CHILD_SETUP_H

/* No signal is blocked, ignored or handled. */
void child_setup_reset_signals(void);

/* Closes the descriptor and all that come after it. */
void child_setup_close_from(int first);

/* Makes `input` (-1: nothing to read) the standard input and `output` the standard output and
 * error. *kept becomes descriptor 3, which is closed by an exec; all others are closed. Returns 0,
 * or -1 with errno, when *kept is as far as it came. */
int child_setup_descriptors(int input, int output, int *kept);

#endif
