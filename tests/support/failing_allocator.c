/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "support/failing_allocator.h"

#include <berth/error.h>
#include <errno.h>
#include <stdatomic.h>

/* The linker gives each wrapped function these two names; no header declares them. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_reallocarray(void *memory, size_t count, size_t size);
char *__real_strdup(const char *string);
char *__real_strndup(const char *string, size_t length);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_reallocarray(void *memory, size_t count, size_t size);
char *__wrap_strdup(const char *string);
char *__wrap_strndup(const char *string, size_t length);

static atomic_bool armed;
static atomic_bool refused;
static atomic_ulong first_to_fail;
static atomic_ulong calls;

/* Counts one allocation. Returns whether it must fail. */
static bool refuse(void)
{
    if (!atomic_load(&armed))
        return false;
    if (atomic_fetch_add(&calls, 1) + 1 < atomic_load(&first_to_fail))
        return false;
    atomic_store(&refused, true);
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuse() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return refuse() ? NULL : __real_realloc(memory, size);
}

void *__wrap_reallocarray(void *memory, size_t count, size_t size)
{
    return refuse() ? NULL : __real_reallocarray(memory, count, size);
}

char *__wrap_strdup(const char *string)
{
    return refuse() ? NULL : __real_strdup(string);
}

char *__wrap_strndup(const char *string, size_t length)
{
    return refuse() ? NULL : __real_strndup(string, length);
}

void failing_allocator_start(unsigned long n)
{
    atomic_store(&calls, 0);
    atomic_store(&refused, false);
    atomic_store(&first_to_fail, n);
    atomic_store(&armed, true);
}

bool failing_allocator_stop(void)
{
    atomic_store(&armed, false);
    return atomic_load(&refused);
}

/* Returns the number of allocations of a run without failures, whose result is *ret_result. */
static unsigned long try_each(int (*attempt)(void *context), void *context, int *ret_result)
{
    for (unsigned long n = 1;; n++) {
        int result;

        failing_allocator_start(n);
        result = attempt(context);
        if (!failing_allocator_stop()) {
            *ret_result = result;
            return n - 1;
        }
        if (result != BERTH_ERROR_MEMORY)
            fail_msg("with allocation %lu refused: expected %d, got %d", n, BERTH_ERROR_MEMORY,
                     result);
    }
}

unsigned long failing_allocator_try_all(int (*attempt)(void *context), void *context)
{
    int result;
    unsigned long count = try_each(attempt, context, &result);

    if (result != 0)
        fail_msg("without a refused allocation: expected 0, got %d", result);
    return count;
}

unsigned long failing_allocator_try_failing(int (*attempt)(void *context), void *context)
{
    int result;
    unsigned long count = try_each(attempt, context, &result);

    if (result >= 0 || result == BERTH_ERROR_MEMORY)
        fail_msg("without a refused allocation: expected another failure, got %d", result);
    return count;
}
