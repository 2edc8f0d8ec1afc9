/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls as they are, also under ThreadSanitizer: what it notes down for a child that borrows
 * our memory would be noted for us. It takes every clone() for a fork(), and would not see any more
 * what this thread does; after the child's sigaction() it would not call our handlers. The same
 * functions have other names, which it does not know.
 */
#ifndef BASE_SYSTEM_UNINTERCEPTED_H
#define BASE_SYSTEM_UNINTERCEPTED_H

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

#ifdef __SANITIZE_THREAD__
#include <sched.h>
#include <signal.h>

int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);
int __sigaction(int number, const struct sigaction *action, struct sigaction *before);
#define unintercepted_clone     __clone
#define unintercepted_sigaction __sigaction
#else
#define unintercepted_clone     clone
#define unintercepted_sigaction sigaction
#endif

#endif
