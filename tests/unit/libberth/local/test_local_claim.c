/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims that are wider, narrower, shared, limited in time or refused; releases of invalid
 * leases.
 */
#include "support/unit.h"

#include <berth/berth.h>
#include <stdatomic.h>
#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/programs/pools.h"

static void a_second_release_is_not_found(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_lease lease = claim_one(pool);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_slot slots[2];
    char message[BERTH_ERROR_MESSAGE_SIZE];

    (void)state;
    release(pool, lease);
    claim_one(pool);
    snprintf(message, sizeof(message),
             "lease %llu: not held in this pool (released already, or another pool's)",
             (unsigned long long)lease.id);
    assert_fails(berth_release(pool, lease, &error), BERTH_ERROR_NOT_FOUND, &error, message);
    assert_int_equal(berth_release(pool, lease, NULL), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(berth_lease_devices(pool, lease, NULL, 0, &error), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(berth_snapshot_leases(pool, slots, 2), 2);
    assert_true(slots[0].leased);
    berth_pool_close(pool);
}

static void a_lease_belongs_to_one_pool(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_pool *other = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct berth_lease others = claim_one(other);

    (void)state;
    assert_int_not_equal(lease.pool, others.pool);
    assert_int_equal(berth_release(other, lease, NULL), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(berth_lease_devices(other, lease, NULL, 0, NULL), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(berth_release(pool, (struct berth_lease){0}, NULL), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(
        berth_release(pool, (struct berth_lease){.id = lease.id + 100, .pool = lease.pool}, NULL),
        BERTH_ERROR_NOT_FOUND);
    release(pool, lease);
    release(other, others);
    berth_pool_close(pool);
    berth_pool_close(other);
}

static void a_refused_release_leaves_who_waits_alone(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease gone = claim_one(pool);
    struct berth_lease lease;
    struct claimer claimer;

    (void)state;
    release(pool, gone);
    lease = claim_one(pool);
    claimer_start(&claimer, pool, NULL);
    await(berth_pool_pending(pool) == 1);
    assert_int_equal(berth_release(pool, gone, NULL), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(berth_pool_pending(pool), 1);
    release(pool, lease);
    claimer_join(&claimer);
    berth_pool_close(pool);
}

static void several_devices_come_together(void **state)
{
    struct berth_pool *pool = pool_of(4);
    struct berth_request *three = request_of("gpus", "3", NULL);
    struct berth_lease_device devices[4] = {{0}};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease lease;

    (void)state;
    assert_works(berth_claim(pool, three, 0, &lease, &error), &error);
    assert_int_equal(berth_lease_devices(pool, lease, devices, COUNT(devices), &error), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(devices[i].slot, i);
    assert_int_equal(berth_lease_devices(pool, lease, devices, 1, &error), 3);
    assert_int_equal(berth_lease_devices(pool, lease, NULL, 0, &error), 3);
    assert_int_equal(berth_try_claim(pool, three, &lease, NULL), BERTH_ERROR_BUSY);
    assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), 0);
    berth_pool_close(pool);
    berth_request_destroy(three);
}

static void who_waits_for_many_is_not_starved(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_request *pair = request_of("gpus", "2", NULL);
    struct berth_lease leases[2] = {claim_one(pool), claim_one(pool)};
    struct berth_lease wide;
    struct claimer waits_first;
    struct claimer waits_second;

    (void)state;
    claimer_start(&waits_first, pool, pair);
    await(berth_pool_pending(pool) == 1);
    claimer_start(&waits_second, pool, NULL);
    await(berth_pool_pending(pool) == 2);
    release(pool, leases[0]);
    assert_int_equal(berth_pool_pending(pool), 2);
    release(pool, leases[1]);
    wide = claimer_join(&waits_first);
    assert_int_equal(berth_lease_devices(pool, wide, NULL, 0, NULL), 2);
    assert_int_equal(berth_pool_pending(pool), 1);
    release(pool, wide);
    claimer_join(&waits_second);
    berth_pool_close(pool);
    berth_request_destroy(pair);
}

static void a_higher_class_is_served_first(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_request *high = request_of("priority", "high", NULL);
    struct berth_lease lease = claim_one(pool);
    struct claimer normal;
    struct claimer urgent;

    (void)state;
    claimer_start(&normal, pool, NULL);
    await(berth_pool_pending(pool) == 1);
    claimer_start(&urgent, pool, high);
    await(berth_pool_pending(pool) == 2);
    release(pool, lease);
    release(pool, claimer_join(&urgent));
    release(pool, claimer_join(&normal));
    berth_pool_close(pool);
    berth_request_destroy(high);
}

static void filters_choose_the_device(void **state)
{
    struct berth_device devices[] = {synth(BERTH_NVIDIA, 0), synth(BERTH_AMD, 0),
                                     synth(BERTH_NVIDIA, 1)};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_request *amd = request_of("vendor", "amd", NULL);
    struct berth_request *hopper = request_of("model", "h100", NULL);
    struct berth_request *large = request_of("min-memory", "60GiB", NULL);
    struct berth_request *capable = request_of("min-cap", "9.0", NULL);
    struct berth_request *named = request_of("device", "nvidia1", NULL);
    struct berth_request *requests[] = {hopper, large, capable, named};
    struct berth_pool *pool = NULL;
    struct berth_lease lease;

    (void)state;
    devices[2].name = "NVIDIA H100 PCIe";
    devices[2].memory = INT64_C(80) << 30;
    devices[2].cap_major = 9;
    assert_works(berth_pool_open_devices(devices, 3, NULL, &pool, &error), &error);
    assert_works(berth_claim(pool, amd, 0, &lease, &error), &error);
    assert_int_equal(device_of(pool, lease).slot, 1);
    for (size_t i = 0; i < COUNT(requests); i++) {
        assert_works(berth_claim(pool, requests[i], 0, &lease, &error), &error);
        assert_int_equal(device_of(pool, lease).slot, 2);
        assert_int_equal(berth_try_claim(pool, requests[i], &lease, NULL), BERTH_ERROR_BUSY);
        release(pool, lease);
        berth_request_destroy(requests[i]);
    }
    berth_request_destroy(amd);
    berth_pool_close(pool);
}

static void what_no_device_can_do_is_refused_at_once(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_request *requests[] = {
        request_of("gpus", "3", NULL),         request_of("vendor", "amd", NULL),
        request_of("model", "H100", NULL),     request_of("min-memory", "1GiB", NULL),
        request_of("device", "nvidia7", NULL),
    };
    struct berth_lease lease = {.id = 7};

    (void)state;
    /* The result is the same for a free and for a full pool. */
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT(requests); i++) {
            struct berth_error error = BERTH_ERROR_INIT;
            struct berth_ticket ticket;

            assert_int_equal(berth_claim(pool, requests[i], BERTH_FOR_EVER, &lease, &error),
                             BERTH_ERROR_IMPOSSIBLE);
            assert_true(strlen(error.message) > 0);
            assert_int_equal(berth_try_claim(pool, requests[i], &lease, &error),
                             BERTH_ERROR_IMPOSSIBLE);
            assert_int_equal(berth_claim_start(pool, requests[i], NULL, &ticket, &error),
                             BERTH_ERROR_IMPOSSIBLE);
            assert_int_equal(berth_pick(pool, requests[i], NULL, 0, &error),
                             BERTH_ERROR_IMPOSSIBLE);
        }
        if (round < 2)
            claim_one(pool);
    }
    assert_int_equal(lease.id, 7);
    for (size_t i = 0; i < COUNT(requests); i++)
        berth_request_destroy(requests[i]);
    berth_pool_close(pool);
}

static void what_contradicts_itself_is_refused(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_request *requests[] = {
        request_of("share", "0.5", NULL),
        request_of("opportunistic", NULL, "priority", "high", NULL),
        request_of("gpus", "A100:1", "model", "H100", NULL),
        request_of("scheduling", "best-effort", "replicas", "2", NULL),
        request_of("policy", "magic", NULL),
    };
    struct berth_lease lease;

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT(requests); i++) {
            struct berth_error error = BERTH_ERROR_INIT;

            for (int again = 0; again < 2; again++) {
                assert_int_equal(berth_claim(pool, requests[i], 0, &lease, &error),
                                 BERTH_ERROR_INVALID);
                assert_int_equal(berth_try_claim(pool, requests[i], &lease, &error),
                                 BERTH_ERROR_INVALID);
            }
            assert_int_equal(error.code, BERTH_ERROR_INVALID);
        }
        if (round == 0)
            claim_one(pool);
    }
    for (size_t i = 0; i < COUNT(requests); i++)
        berth_request_destroy(requests[i]);
    berth_pool_close(pool);
}

static void shared_devices_have_several_tenants(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_request *half = request_of("sharing", "time-slice", "share", "0.5", NULL);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease leases[2];
    struct berth_lease third;
    struct berth_slot slot;

    (void)state;
    assert_works(berth_claim(pool, half, 0, &leases[0], &error), &error);
    assert_int_equal(berth_try_claim(pool, NULL, &third, NULL), BERTH_ERROR_BUSY);
    assert_works(berth_claim(pool, half, 0, &leases[1], &error), &error);
    assert_int_equal(device_of(pool, leases[1]).share, 500000);
    assert_int_equal(berth_try_claim(pool, half, &third, NULL), BERTH_ERROR_BUSY);
    assert_int_equal(berth_snapshot_leases(pool, &slot, 1), 1);
    assert_int_equal(slot.tenants, 2);
    release(pool, leases[0]);
    assert_works(berth_try_claim(pool, half, &third, &error), &error);
    berth_pool_close(pool);
    berth_request_destroy(half);
}

static void a_claim_gives_up_in_time(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease lease = {.id = 7};
    int64_t start;

    (void)state;
    claim_one(pool);
    assert_fails(berth_claim(pool, NULL, 0, &lease, &error), BERTH_ERROR_TIMED_OUT, &error,
                 "not granted within 0s");
    assert_int_equal(berth_claim(pool, NULL, -5, &lease, NULL), BERTH_ERROR_TIMED_OUT);
    start = monotonic_now();
    assert_fails(berth_claim(pool, NULL, 20 * MILLISECOND, &lease, &error), BERTH_ERROR_TIMED_OUT,
                 &error, "not granted within 20ms");
    assert_true(monotonic_now() - start >= 20 * MILLISECOND);
    assert_int_equal(berth_pool_pending(pool), 0);
    assert_int_equal(lease.id, 7);
    berth_pool_close(pool);
}

static void who_gives_up_lets_the_next_one_through(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_request *pair = request_of("gpus", "2", NULL);
    struct berth_lease lease;
    struct claimer claimer;

    (void)state;
    claim_one(pool);
    /* This claim waits for both devices, so the claim behind it gets neither. */
    claimer = (struct claimer){.pool = pool, .request = pair, .timeout = 50 * MILLISECOND};
    assert_int_equal(pthread_create(&claimer.thread, NULL, claimer_run, &claimer), 0);
    assert_int_equal(berth_claim(pool, NULL, TIMEOUT, &lease, NULL), 0);
    join_thread(claimer.thread);
    assert_int_equal(claimer.code, BERTH_ERROR_TIMED_OUT);
    berth_pool_close(pool);
    berth_request_destroy(pair);
}

static void a_very_long_wait_is_for_ever(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct claimer claimer = {.pool = pool, .timeout = INT64_MAX - 1};

    (void)state;
    assert_int_equal(pthread_create(&claimer.thread, NULL, claimer_run, &claimer), 0);
    await(berth_pool_pending(pool) == 1);
    release(pool, lease);
    claimer_join(&claimer);
    berth_pool_close(pool);
}

struct expiry {
    atomic_int calls;
    _Atomic uint64_t lease;
};

static void note_expiry(void *data, struct berth_lease lease)
{
    struct expiry *expiry = data;

    atomic_store(&expiry->lease, lease.id);
    atomic_fetch_add(&expiry->calls, 1);
}

static void a_lease_past_its_limit_is_told_and_stays(void **state)
{
    struct expiry expiry = {0};
    const struct berth_pool_options options = {
        .size = sizeof(options), .expired = note_expiry, .expired_data = &expiry};
    struct berth_pool *pool = pool_with(1, &options);
    struct berth_request *brief = request_of("time", "0.005", NULL);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease lease;
    struct claimer claimer;

    (void)state;
    for (int round = 1; round <= 3; round++) {
        assert_works(round == 2 ? berth_try_claim(pool, brief, &lease, &error)
                                : berth_claim(pool, brief, 0, &lease, &error),
                     &error);
        await(atomic_load(&expiry.calls) == round);
        assert_int_equal(atomic_load(&expiry.lease), lease.id);
        /* No other claim gets the device before its release. */
        assert_int_equal(device_of(pool, lease).slot, 0);
        assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), BERTH_ERROR_BUSY);
        claimer_start(&claimer, pool, NULL);
        await(berth_pool_pending(pool) == 1);
        release(pool, lease);
        release(pool, claimer_join(&claimer));
    }
    berth_pool_close(pool);
    berth_request_destroy(brief);
}

static void a_lease_that_is_released_in_time_does_not_expire(void **state)
{
    struct expiry expiry = {0};
    const struct berth_pool_options options = {
        .size = sizeof(options), .expired = note_expiry, .expired_data = &expiry};
    struct berth_pool *pool = pool_with(1, &options);
    struct berth_request *hour = request_of("time", "1h", NULL);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease lease;

    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_works(berth_claim(pool, hour, 0, &lease, &error), &error);
        assert_int_equal(berth_claim(pool, hour, 0, &lease, NULL), BERTH_ERROR_TIMED_OUT);
        release(pool, lease);
    }
    assert_int_equal(atomic_load(&expiry.calls), 0);
    berth_pool_close(pool);
    berth_request_destroy(hour);
}

static void closing_ends_waiting_claims(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_request *pair = request_of("gpus", "2", NULL);
    struct claimer claimers[4];

    (void)state;
    claim_one(pool);
    /* If the pair were cancelled first, a claim behind it would get the free device. */
    claimer_start(&claimers[0], pool, pair);
    await(berth_pool_pending(pool) == 1);
    for (size_t i = 1; i < COUNT(claimers); i++)
        claimer_start(&claimers[i], pool, NULL);
    await(berth_pool_pending(pool) == COUNT(claimers));
    berth_pool_close(pool);
    for (size_t i = 0; i < COUNT(claimers); i++) {
        join_thread(claimers[i].thread);
        assert_int_equal(claimers[i].code, BERTH_ERROR_CANCELLED);
    }
    berth_request_destroy(pair);
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    berth_pool_close(NULL);
    berth_request_destroy(NULL);
    berth_arbiter_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_release_is_not_found),
        cmocka_unit_test(a_lease_belongs_to_one_pool),
        cmocka_unit_test(a_refused_release_leaves_who_waits_alone),
        cmocka_unit_test(several_devices_come_together),
        cmocka_unit_test(who_waits_for_many_is_not_starved),
        cmocka_unit_test(a_higher_class_is_served_first),
        cmocka_unit_test(filters_choose_the_device),
        cmocka_unit_test(what_no_device_can_do_is_refused_at_once),
        cmocka_unit_test(what_contradicts_itself_is_refused),
        cmocka_unit_test(shared_devices_have_several_tenants),
        cmocka_unit_test(a_claim_gives_up_in_time),
        cmocka_unit_test(who_gives_up_lets_the_next_one_through),
        cmocka_unit_test(a_very_long_wait_is_for_ever),
        cmocka_unit_test(a_lease_past_its_limit_is_told_and_stays),
        cmocka_unit_test(a_lease_that_is_released_in_time_does_not_expire),
        cmocka_unit_test(closing_ends_waiting_claims),
        cmocka_unit_test(closing_nothing_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
