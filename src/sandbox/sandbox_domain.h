/* SPDX-License-Identifier: Apache-2.0
 *
 * The Landlock domain of a driver's process. For sandbox.c only.
 */
#ifndef SANDBOX_SANDBOX_DOMAIN_H
#define SANDBOX_SANDBOX_DOMAIN_H

/* Puts this process, which must have one thread, into a domain of its own, for good. It can then
 * not trace processes outside of the domain, and not open their /proc/PID/mem, environ and fd, even
 * if they are of its user and do not hide. From version 6 of Landlock on, it cannot signal them
 * either. It can execute no program, and cannot move files between directories. Sets no_new_privs.
 * Does nothing if the kernel has no Landlock, or if a filter of the service manager forbids it. */
void sandbox_domain_enter(void);

#endif
