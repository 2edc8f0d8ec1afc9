/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads at once.
 */
#include "support/unit.h"

#include <berth/berth.h>

#include "support/programs/many_claimers.h"
#include "support/programs/pools.h"

enum { THREADS = 64 };

static void a_device_has_one_user_at_a_time(void **state)
{
    static struct claimers claimers;
    pthread_t threads[THREADS];

    (void)state;
    assert_true(claimers_begin(&claimers));
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, claimers_run, &claimers), 0);
    await(atomic_load(&claimers.turns) >= 20000);
    atomic_store(&claimers.ends, true);
    for (size_t i = 0; i < THREADS; i++)
        join_thread(threads[i]);
    claimers_end(&claimers);
    assert_int_equal(atomic_load(&claimers.wrongs), 0);
}

/* Threads that take turns on one device, in the order of their claims. */
struct turn {
    struct berth_pool *pool;
    pthread_t thread;
    atomic_int *served;
    int place;
};

static void *take_turn(void *argument)
{
    struct turn *turn = argument;
    struct berth_lease lease;

    if (berth_claim(turn->pool, NULL, BERTH_FOR_EVER, &lease, NULL) < 0)
        return argument;
    turn->place = atomic_fetch_add(turn->served, 1);
    berth_release(turn->pool, lease, NULL);
    return NULL;
}

static void claims_are_served_in_order_of_arrival(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct turn turns[THREADS];
    atomic_int served = 0;

    (void)state;
    for (size_t i = 0; i < THREADS; i++) {
        turns[i] = (struct turn){.pool = pool, .served = &served};
        assert_int_equal(pthread_create(&turns[i].thread, NULL, take_turn, &turns[i]), 0);
        await(berth_pool_pending(pool) == i + 1);
    }
    release(pool, lease);
    for (size_t i = 0; i < THREADS; i++) {
        void *failed;

        failed = join_thread(turns[i].thread);
        assert_null(failed);
        assert_int_equal(turns[i].place, i);
    }
    berth_pool_close(pool);
}

/* The woken thread may close the pool while the thread that woke it is still leaving. */
static void *claim_and_close(void *argument)
{
    struct berth_pool *pool = argument;
    struct berth_lease lease;

    if (berth_claim(pool, NULL, BERTH_FOR_EVER, &lease, NULL) < 0)
        return argument;
    berth_pool_close(pool);
    return NULL;
}

static void who_is_woken_may_close_the_pool(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        struct berth_pool *pool = pool_of(1);
        struct berth_lease lease = claim_one(pool);
        pthread_t thread;
        void *failed;

        assert_int_equal(pthread_create(&thread, NULL, claim_and_close, pool), 0);
        await(berth_pool_pending(pool) == 1);
        release(pool, lease);
        failed = join_thread(thread);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_has_one_user_at_a_time),
        cmocka_unit_test(claims_are_served_in_order_of_arrival),
        cmocka_unit_test(who_is_woken_may_close_the_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
