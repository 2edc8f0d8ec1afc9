/* SPDX-License-Identifier: Apache-2.0
 *
 * The priority of the machine's daemon and its helpers: higher than that of users' programs, so
 * that users who keep all CPUs busy do not delay the daemon's answers to others.
 */
#ifndef DAEMON_CORE_PRIORITY_H
#define DAEMON_CORE_PRIORITY_H

/* As nice(1) has it. */
enum { PRIORITY_NICE = -5 };

/* Raises this process's priority, which programs that it starts inherit. Without the right for
 * that, it stays. */
void priority_raise(void);

/* Gives this process the normal priority, if it has a raised one: for programs that are not
 * berth's. */
void priority_reset(void);

#endif
