/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator that fails at the n-th call. In every test program that links the support library,
 * the linker's --wrap lets it count the calls of malloc, calloc, realloc, reallocarray, strdup and
 * strndup, also those of static libraries, but not those inside libc.
 */
#ifndef TESTS_FAILING_ALLOCATOR_H
#define TESTS_FAILING_ALLOCATOR_H

#include <stdbool.h>

/* From now on the n-th allocation (1 is the next) and all after it fail, until
 * failing_allocator_stop. */
void failing_allocator_start(unsigned long n);

/* Lets all allocations succeed again. Returns whether one was refused since the start. */
bool failing_allocator_stop(void);

/* Runs `attempt` with the first allocation failing, then with the second, and so on until none was
 * refused. Fails the test unless `attempt` returns BERTH_ERROR_MEMORY each time that one was
 * refused, and 0 in the end. LeakSanitizer and valgrind find its leaks. Returns the number of
 * allocations of a whole run. */
unsigned long failing_allocator_try_all(int (*attempt)(void *context), void *context);

/* Does the same with an attempt that fails for another reason in the end. */
unsigned long failing_allocator_try_failing(int (*attempt)(void *context), void *context);

#endif
