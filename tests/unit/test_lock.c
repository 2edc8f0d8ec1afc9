/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "client/lock.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 8, ROUNDS = 20000 };

/* What the lock guards: not atomic, so that it would be lost updates, or TSan, that tell. */
struct shared {
    struct lock lock;
    long count;
};

static void *add(void *argument)
{
    struct shared *shared = argument;

    for (int i = 0; i < ROUNDS; i++) {
        lock_take(&shared->lock);
        shared->count++;
        /* Some hold it long enough that others go to sleep. */
        if (i % 1000 == 0)
            sched_yield();
        lock_give(&shared->lock);
    }
    return NULL;
}

static void one_thread_at_a_time_has_it(void **state)
{
    struct shared shared = {0};
    pthread_t threads[THREADS];

    (void)state;
    lock_prepare();
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add, &shared), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(shared.count, (long)THREADS * ROUNDS);
    assert_int_equal(shared.lock.word, 0);
    assert_int_equal(shared.lock.sleepers, 0);
}

static void who_sleeps_is_woken(void **state)
{
    struct shared shared = {0};
    pthread_t threads[THREADS];

    (void)state;
    lock_prepare();
    lock_take(&shared.lock);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add, &shared), 0);
    while (atomic_load(&shared.lock.sleepers) < THREADS)
        sched_yield();
    assert_int_equal(shared.count, 0);
    lock_give(&shared.lock);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(shared.count, (long)THREADS * ROUNDS);
}

static void trying_does_not_wait(void **state)
{
    struct lock lock = {0};

    (void)state;
    assert_true(lock_try(&lock));
    assert_false(lock_try(&lock));
    lock_give(&lock);
    assert_true(lock_try(&lock));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_at_a_time_has_it),
        cmocka_unit_test(who_sleeps_is_woken),
        cmocka_unit_test(trying_does_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
