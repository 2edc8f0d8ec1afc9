/* SPDX-License-Identifier: Apache-2.0
 *
 * The parent's pool in a child process.
 */
#include "support/unit.h"

#include <berth/berth.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/programs/pools.h"

/* The objects that the child inherits. */
struct heritage {
    struct berth_pool *pool;
    struct berth_lease lease;
    struct berth_ticket ticket;
    struct berth_arbiter *arbiter;
};

static bool refuse(void *data, struct berth_lease lease, const struct berth_lease_device *device)
{
    (void)data;
    (void)lease;
    (void)device;
    return false;
}

static void ignore(void *data, struct berth_lease lease)
{
    (void)data;
    (void)lease;
}

/* Counts the calls that did not fail as they must. */
static int count_wrong(const struct heritage *heritage)
{
    const struct berth_arbiter_options options = {
        .size = sizeof(options), .offer = refuse, .take_back = ignore};
    const struct berth_load load = {0};
    struct berth_pool *pool = heritage->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_arbiter *arbiter;
    struct berth_device device;
    struct berth_lease lease;
    struct berth_ticket ticket;
    struct berth_slot slot;
    size_t picked;
    int code;
    const int codes[] = {
        berth_claim(pool, NULL, BERTH_FOR_EVER, &lease, &error),
        berth_claim(pool, NULL, 0, &lease, NULL),
        berth_try_claim(pool, NULL, &lease, &error),
        berth_release(pool, heritage->lease, &error),
        berth_claim_start(pool, NULL, NULL, &ticket, &error),
        berth_claim_wait(pool, heritage->ticket, BERTH_FOR_EVER, &lease, &error),
        berth_claim_next(pool, &ticket, &code, &lease, &error),
        berth_cancel(pool, heritage->ticket, &error),
        berth_pool_descriptor(pool, &error),
        berth_pool_device(pool, 0, &device, &error),
        berth_lease_devices(pool, heritage->lease, NULL, 0, &error),
        berth_snapshot_leases(pool, &slot, 1),
        berth_arbiter_start(pool, &options, &arbiter, &error),
        berth_report_work(pool, 0, 1, 1, &error),
        berth_report_load(pool, 0, &load, &error),
        berth_set_weight(pool, 0, 2, &error),
        berth_pick(pool, NULL, &picked, 1, &error),
    };
    int wrong = 0;

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        wrong += codes[i] != BERTH_ERROR_FORKED;
    wrong += error.code != BERTH_ERROR_FORKED;
    wrong += berth_pool_pending(pool) != 0;
    wrong += berth_pool_capacity(pool) != 1;
    return wrong;
}

/* A child may open its own pool. */
static int count_wrong_of_own(void)
{
    const struct berth_device device = synth(BERTH_NVIDIA, 0);
    struct berth_pool *pool;
    struct berth_lease lease;
    int wrong = 0;

    if (berth_pool_open_devices(&device, 1, NULL, &pool, NULL) < 0)
        return 1;
    wrong += berth_claim(pool, NULL, 0, &lease, NULL) != 0;
    wrong += berth_release(pool, lease, NULL) != 0;
    berth_pool_close(pool);
    return wrong;
}

static void check_child(const struct heritage *heritage)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        int wrong = count_wrong(heritage) + count_wrong_of_own();

        berth_arbiter_stop(heritage->arbiter);
        berth_pool_close(heritage->pool);
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_child_has_no_pool_and_the_parent_goes_on(void **state)
{
    struct heritage heritage = {.pool = pool_of(1)};
    const struct berth_arbiter_options options = {
        .size = sizeof(options), .offer = refuse, .take_back = ignore};
    struct berth_pool *pool = heritage.pool;
    struct claimer claimer;

    (void)state;
    heritage.lease = claim_one(pool);
    claimer_start(&claimer, pool, NULL);
    await(berth_pool_pending(pool) == 1);
    assert_int_equal(berth_claim_start(pool, NULL, NULL, &heritage.ticket, NULL), 0);
    assert_true(berth_pool_descriptor(pool, NULL) >= 0);
    assert_int_equal(berth_arbiter_start(pool, &options, &heritage.arbiter, NULL), 0);
    check_child(&heritage);
    assert_int_equal(berth_pool_pending(pool), 2);
    release(pool, heritage.lease);
    release(pool, claimer_join(&claimer));
    assert_int_equal(berth_claim_wait(pool, heritage.ticket, 0, &heritage.lease, NULL), 0);
    release(pool, heritage.lease);
    check_child(&heritage);
    berth_pool_close(pool);
}

/* Keeps the lock busy, so that some forks happen while it is held. */
struct noise {
    struct berth_pool *pool;
    atomic_bool end;
};

static void *make_noise(void *argument)
{
    struct noise *noise = argument;
    struct berth_lease lease;

    while (!atomic_load(&noise->end)) {
        if (berth_try_claim(noise->pool, NULL, &lease, NULL) == 0)
            berth_release(noise->pool, lease, NULL);
    }
    return NULL;
}

static void a_child_survives_whatever_the_parent_was_doing(void **state)
{
    struct noise noise = {.pool = pool_of(1)};
    struct heritage heritage = {.pool = noise.pool};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, make_noise, &noise), 0);
    for (int i = 0; i < 30; i++)
        check_child(&heritage);
    atomic_store(&noise.end, true);
    join_thread(thread);
    berth_pool_close(noise.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_no_pool_and_the_parent_goes_on),
        cmocka_unit_test(a_child_survives_whatever_the_parent_was_doing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
