/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "libberth/local/lock.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 8, ROUNDS = 20000 };

/* The data that the lock guards. It is not atomic, so lost updates or TSan show a broken lock. */
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
        /* Some threads hold it long enough that others go to sleep. */
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
    assert_true(lock_try_word(&lock));
    assert_false(lock_try_word(&lock));
    lock_give(&lock);
    assert_true(lock_try_word(&lock));
}

static void take_often(struct shared *shared, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        lock_take(&shared->lock);
        shared->count++;
        lock_give(&shared->lock);
    }
}

static void the_first_thread_is_favoured_until_another_comes(void **state)
{
    struct shared shared = {0};
    pthread_t other;

    (void)state;
    lock_prepare();
    lock_favour_first(&shared.lock);
    if (atomic_load(&shared.lock.favoured) == LOCK_FAVOURS_NOBODY) {
        print_message("skip: no membarrier here\n");
        skip();
    }
    take_often(&shared, 3);
    assert_int_equal(shared.lock.favoured, lock_thread);
    lock_take(&shared.lock);
    assert_true(lock_is_taken(&shared.lock));
    assert_int_equal(shared.lock.word, 0);
    assert_int_equal(pthread_create(&other, NULL, add, &shared), 0);
    /* The other thread has taken the lock's word and waits for the favoured thread. */
    while (atomic_load(&shared.lock.ending) == 0)
        sched_yield();
    assert_int_equal(shared.count, 3);
    lock_give(&shared.lock);
    take_often(&shared, ROUNDS);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(shared.count, 3 + 2L * ROUNDS);
    assert_int_equal(shared.lock.favoured, LOCK_FAVOURS_NOBODY);
    assert_false(lock_is_taken(&shared.lock));
}

/* The favour ends while the favoured thread takes and gives the lock; many times. */
static void a_favour_ends_at_any_moment(void **state)
{
    (void)state;
    lock_prepare();
    for (int round = 0; round < 200; round++) {
        struct shared shared = {0};
        pthread_t other;

        lock_favour_first(&shared.lock);
        take_often(&shared, round);
        assert_int_equal(pthread_create(&other, NULL, add, &shared), 0);
        take_often(&shared, ROUNDS);
        assert_int_equal(pthread_join(other, NULL), 0);
        assert_int_equal(shared.count, round + 2L * ROUNDS);
        assert_false(lock_is_taken(&shared.lock));
    }
}

/* The favoured thread ends before another thread comes. */
static void a_favoured_thread_may_end(void **state)
{
    struct shared shared = {0};
    pthread_t first;

    (void)state;
    lock_prepare();
    lock_favour_first(&shared.lock);
    assert_int_equal(pthread_create(&first, NULL, add, &shared), 0);
    assert_int_equal(pthread_join(first, NULL), 0);
    take_often(&shared, 2);
    assert_int_equal(shared.count, ROUNDS + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_at_a_time_has_it),
        cmocka_unit_test(who_sleeps_is_woken),
        cmocka_unit_test(trying_does_not_wait),
        cmocka_unit_test(the_first_thread_is_favoured_until_another_comes),
        cmocka_unit_test(a_favour_ends_at_any_moment),
        cmocka_unit_test(a_favoured_thread_may_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
