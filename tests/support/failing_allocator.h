/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator that fails at the n-th call. Every test program that links the support library has
 * its own objects' (and statically linked libraries') calls of malloc, calloc, realloc,
 * reallocarray, strdup and strndup counted, by the linker's --wrap; libc's internal ones are not.
 */
#ifndef TESTS_FAILING_ALLOCATOR_H
#define TESTS_FAILING_ALLOCATOR_H

#include <stdbool.h>

/* From now on the n-th allocation (1 is the next) and all after it fail, until
 * failing_allocator_stop. */
void failing_allocator_start(unsigned long n);

/* Back to normal. Returns whether an allocation was refused since the start. */
bool failing_allocator_stop(void);

/* Runs `attempt` with the first allocation failing, then with the second, and so on until it runs
 * through with none refused. Whenever one was refused, `attempt` must return BERTH_ERROR_MEMORY
 * (fails the test otherwise), and in the end 0. What it leaks, LeakSanitizer or valgrind finds.
 * Returns how many allocations a whole run takes. */
unsigned long failing_allocator_try_all(int (*attempt)(void *context), void *context);

/* The same of what fails in the end anyway, for another reason. */
unsigned long failing_allocator_try_failing(int (*attempt)(void *context), void *context);

#endif
