/* SPDX-License-Identifier: Apache-2.0
 *
 * clone() and sigaction() for a child that shares the parent's memory. ThreadSanitizer intercepts
 * these functions and would record the child's calls as the parent's: it takes every clone() for a
 * fork() and stops watching the calling thread, and after the child's sigaction() it does not call
 * the parent's handlers. It does not intercept the same functions under other names.
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
