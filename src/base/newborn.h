/* SPDX-License-Identifier: Apache-2.0
 *
 * What a new process does before it becomes a program, so that nothing of ours is left in it. Only
 * system calls: it may share our memory, and another thread of ours may hold any lock.
 */
#ifndef BASE_NEWBORN_H
#define BASE_NEWBORN_H

/* No signal is blocked, ignored or handled. */
void newborn_reset_signals(void);

/* Closes the descriptor and all that come after it. */
void newborn_close_from(int first);

#endif
