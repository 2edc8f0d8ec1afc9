/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "support/failing_allocator.h"

#include <berth/error.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"

/* Functions that each allocate in one way. They are called through pointers, because a compiler may
 * remove an allocation whose memory is not used. */
static void *by_malloc(void)
{
    return malloc(10);
}

static void *by_calloc(void)
{
    return calloc(2, 5);
}

static void *by_realloc(void)
{
    return realloc(NULL, 10);
}

static void *by_reallocarray(void)
{
    return reallocarray(NULL, 2, 5);
}

static void *by_strdup(void)
{
    return strdup("text");
}

static void *by_strndup(void)
{
    return strndup("text", 2);
}

typedef void *(*allocate_function)(void);

static allocate_function volatile const ways[] = {
    by_malloc, by_calloc, by_realloc, by_reallocarray, by_strdup, by_strndup,
};

enum { WAYS = COUNT(ways) };

static void every_way_fails_from_the_nth_on(void **state)
{
    (void)state;
    for (unsigned long n = 1; n <= WAYS; n++) {
        void *memory[WAYS];
        int numbers[WAYS];

        failing_allocator_start(n);
        for (unsigned i = 0; i < WAYS; i++) {
            errno = 0;
            memory[i] = ways[i]();
            numbers[i] = errno;
        }
        assert_true(failing_allocator_stop());
        for (unsigned i = 0; i < WAYS; i++) {
            assert_int_equal(memory[i] == NULL, i + 1 >= n);
            assert_int_equal(numbers[i], i + 1 >= n ? ENOMEM : 0);
            free(memory[i]);
        }
    }
}

static void nothing_fails_when_stopped(void **state)
{
    (void)state;
    failing_allocator_start(1);
    assert_false(failing_allocator_stop());
    for (unsigned i = 0; i < WAYS; i++) {
        void *memory = ways[i]();

        assert_non_null(memory);
        free(memory);
    }
    assert_false(failing_allocator_stop());
}

static void a_start_forgets_what_was_before(void **state)
{
    (void)state;
    failing_allocator_start(1);
    assert_null(ways[0]());
    failing_allocator_start(2);
    free(ways[0]());
    assert_false(failing_allocator_stop());
}

static void a_refused_realloc_keeps_the_memory(void **state)
{
    /* A pointer, because compilers assume that realloc always frees the old memory. */
    void *(*volatile const resize)(void *memory, size_t size) = realloc;
    char *memory = strdup("kept");
    void *moved;

    (void)state;
    failing_allocator_start(1);
    moved = resize(memory, 1000);
    assert_true(failing_allocator_stop());
    assert_null(moved);
    assert_string_equal(memory, "kept");
    free(memory);
}

static void contents_arrive(void **state)
{
    char *copy = strdup("text");
    char *part = strndup("text", 2);
    int *zeros = calloc(3, sizeof(*zeros));

    (void)state;
    assert_string_equal(copy, "text");
    assert_string_equal(part, "te");
    assert_int_equal(zeros[2], 0);
    free(copy);
    free(part);
    free(zeros);
}

/* How often an attempt allocates, and how often it ran. */
struct attempts {
    unsigned allocations;
    unsigned runs;
};

static int allocate_some(void *context)
{
    struct attempts *attempts = context;

    attempts->runs++;
    for (unsigned i = 0; i < attempts->allocations; i++) {
        void *memory = ways[i % WAYS]();

        if (memory == NULL)
            return BERTH_ERROR_MEMORY;
        free(memory);
    }
    return 0;
}

static void try_all_counts(void **state)
{
    (void)state;
    for (unsigned allocations = 0; allocations < 20; allocations++) {
        struct attempts attempts = {.allocations = allocations};

        assert_int_equal(failing_allocator_try_all(allocate_some, &attempts), allocations);
        assert_int_equal(attempts.runs, allocations + 1);
    }
}

enum { THREADS = 4, ALLOCATIONS = 5000 };

static void *allocate_in_thread(void *context)
{
    atomic_ulong *successes = context;

    for (unsigned i = 0; i < ALLOCATIONS; i++) {
        void *memory = ways[i % WAYS]();

        if (memory != NULL)
            atomic_fetch_add(successes, 1);
        free(memory);
    }
    return NULL;
}

static void threads_share_one_count(void **state)
{
    const unsigned long n = THREADS * ALLOCATIONS / 2;
    pthread_t threads[THREADS];
    atomic_ulong successes = 0;

    (void)state;
    failing_allocator_start(n);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_in_thread, &successes), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(failing_allocator_stop());
    assert_int_equal(atomic_load(&successes), n - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_fails_from_the_nth_on),
        cmocka_unit_test(nothing_fails_when_stopped),
        cmocka_unit_test(a_start_forgets_what_was_before),
        cmocka_unit_test(a_refused_realloc_keeps_the_memory),
        cmocka_unit_test(contents_arrive),
        cmocka_unit_test(try_all_counts),
        cmocka_unit_test(threads_share_one_count),
    };

    return cmocka_run_group_tests_name("failing_allocator", tests, NULL, NULL);
}
