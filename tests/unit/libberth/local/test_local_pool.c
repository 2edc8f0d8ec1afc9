/* SPDX-License-Identifier: Apache-2.0
 *
 * The behaviour of a pool: claims, order, pending claims and snapshots. The names are those of
 * the pool that berth grew from.
 */
#include "support/unit.h"

#include <berth/berth.h>
#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/programs/pools.h"

static void empty_pool_returns_none(void **state)
{
    struct berth_pool *pool = pool_of(0);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease lease;

    (void)state;
    assert_int_equal(berth_claim(pool, NULL, BERTH_FOR_EVER, &lease, &error),
                     BERTH_ERROR_NO_DEVICE);
    assert_int_equal(error.code, BERTH_ERROR_NO_DEVICE);
    assert_int_equal(berth_claim(pool, NULL, 0, &lease, NULL), BERTH_ERROR_NO_DEVICE);
    assert_int_equal(berth_pool_capacity(pool), 0);
    assert_int_equal(berth_pool_pending(pool), 0);
    berth_pool_close(pool);
}

static void single_gpu_serializes_claims(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease first = claim_one(pool);
    struct berth_lease second;
    struct claimer claimer;

    (void)state;
    assert_int_equal(device_of(pool, first).index, 0);
    claimer_start(&claimer, pool, NULL);
    await(berth_pool_pending(pool) == 1);
    release(pool, first);
    second = claimer_join(&claimer);
    assert_int_equal(device_of(pool, second).index, 0);
    assert_true(second.id > first.id);
    release(pool, second);
    berth_pool_close(pool);
}

static void two_gpus_concurrent_leases_distinct_indices(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_lease a = claim_one(pool);
    struct berth_lease b = claim_one(pool);

    (void)state;
    assert_int_not_equal(device_of(pool, a).index, device_of(pool, b).index);
    assert_int_not_equal(device_of(pool, a).slot, device_of(pool, b).slot);
    berth_pool_close(pool);
}

static void third_claim_waits_until_one_drops(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_lease leases[2] = {claim_one(pool), claim_one(pool)};
    uint32_t dropped = device_of(pool, leases[1]).index;
    struct berth_lease third;
    struct claimer claimer;

    (void)state;
    claimer_start(&claimer, pool, NULL);
    await(berth_pool_pending(pool) == 1);
    release(pool, leases[1]);
    third = claimer_join(&claimer);
    assert_int_equal(device_of(pool, third).index, dropped);
    berth_pool_close(pool);
}

/* Opens a pool of these two devices and checks that two claims get them in order. */
static void check_pair(struct berth_device one, struct berth_device other)
{
    const struct berth_device devices[] = {one, other};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_pool *pool = NULL;
    struct berth_lease_device leased[2];

    assert_works(berth_pool_open_devices(devices, 2, NULL, &pool, &error), &error);
    for (size_t i = 0; i < 2; i++)
        leased[i] = device_of(pool, claim_one(pool));
    assert_int_equal(leased[0].vendor, one.vendor);
    assert_int_equal(leased[0].index, one.index);
    assert_int_equal(leased[1].vendor, other.vendor);
    assert_int_equal(leased[1].index, other.index);
    assert_int_equal(leased[0].share, 1000000);
    assert_true(leased[0].memory == BERTH_UNKNOWN);
    assert_null(leased[0].name);
    assert_null(leased[0].uuid);
    berth_pool_close(pool);
}

static void two_intel_arc_cards_both_get_intel_leases(void **state)
{
    (void)state;
    check_pair(synth(BERTH_INTEL, 0), synth(BERTH_INTEL, 1));
}

static void two_nvidia_cards_both_get_nvidia_leases(void **state)
{
    (void)state;
    check_pair(synth(BERTH_NVIDIA, 0), synth(BERTH_NVIDIA, 1));
}

static void lease_carries_vendor_for_dispatch(void **state)
{
    (void)state;
    check_pair(synth(BERTH_NVIDIA, 0), synth(BERTH_INTEL, 0));
}

static void snapshot_leases_reflects_current_state(void **state)
{
    const struct berth_device devices[] = {synth(BERTH_NVIDIA, 0), synth(BERTH_INTEL, 1)};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_slot slots[2];
    struct berth_lease lease;
    struct berth_pool *pool = NULL;

    (void)state;
    assert_works(berth_pool_open_devices(devices, 2, NULL, &pool, &error), &error);
    assert_int_equal(berth_snapshot_leases(pool, slots, 2), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(slots[i].slot, i);
        assert_int_equal(slots[i].vendor, devices[i].vendor);
        assert_int_equal(slots[i].index, devices[i].index);
        assert_int_equal(slots[i].mig, BERTH_NO_MIG);
        assert_false(slots[i].leased);
        assert_int_equal(slots[i].tenants, 0);
        assert_int_equal(slots[i].lease, 0);
    }
    lease = claim_one(pool);
    assert_int_equal(berth_snapshot_leases(pool, slots, 2), 2);
    assert_true(slots[0].leased);
    assert_int_equal(slots[0].tenants, 1);
    assert_int_equal(slots[0].lease, lease.id);
    assert_false(slots[1].leased);
    release(pool, lease);
    assert_int_equal(berth_snapshot_leases(pool, slots, 2), 2);
    assert_false(slots[0].leased || slots[1].leased);
    berth_pool_close(pool);
}

static void snapshot_leases_fills_what_there_is_room_for(void **state)
{
    struct berth_pool *pool = pool_of(3);
    struct berth_slot slots[2] = {{.slot = 99}, {.slot = 99}};

    (void)state;
    assert_int_equal(berth_snapshot_leases(pool, slots, 1), 3);
    assert_int_equal(slots[0].slot, 0);
    assert_int_equal(slots[1].slot, 99);
    assert_int_equal(berth_snapshot_leases(pool, NULL, 0), 3);
    berth_pool_close(pool);
}

static void snapshot_leases_empty_for_cpu_host(void **state)
{
    struct berth_pool *pool = pool_of(0);

    (void)state;
    assert_int_equal(berth_snapshot_leases(pool, NULL, 0), 0);
    berth_pool_close(pool);
}

static void snapshot_leases_carries_device_name(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_slot slot;

    (void)state;
    assert_int_equal(berth_snapshot_leases(pool, &slot, 1), 1);
    assert_string_equal(slot.name, "synth-0");
    berth_pool_close(pool);
}

static void pending_claimers_starts_at_zero(void **state)
{
    struct berth_pool *pool = pool_of(2);

    (void)state;
    assert_int_equal(berth_pool_pending(pool), 0);
    berth_pool_close(pool);
}

static void pending_claimers_zero_after_unblocked_claim(void **state)
{
    struct berth_pool *pool = pool_of(1);

    (void)state;
    claim_one(pool);
    assert_int_equal(berth_pool_pending(pool), 0);
    berth_pool_close(pool);
}

static void pending_claimers_increments_during_blocked_claim(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct claimer claimer;

    (void)state;
    assert_int_equal(berth_pool_pending(pool), 0);
    claimer_start(&claimer, pool, NULL);
    await(berth_pool_pending(pool) == 1);
    release(pool, lease);
    /* The release grants the claim before the waiting thread has run. */
    assert_int_equal(berth_pool_pending(pool), 0);
    release(pool, claimer_join(&claimer));
    assert_int_equal(berth_pool_pending(pool), 0);
    berth_pool_close(pool);
}

static void pending_claimers_increments_for_multiple_blockers(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct claimer claimers[2];

    (void)state;
    claimer_start(&claimers[0], pool, NULL);
    await(berth_pool_pending(pool) == 1);
    claimer_start(&claimers[1], pool, NULL);
    await(berth_pool_pending(pool) == 2);
    release(pool, lease);
    assert_int_equal(berth_pool_pending(pool), 1);
    /* The first claim is served first. */
    release(pool, claimer_join(&claimers[0]));
    assert_int_equal(berth_pool_pending(pool), 0);
    release(pool, claimer_join(&claimers[1]));
    berth_pool_close(pool);
}

static void pending_claimers_decrements_under_cancellation(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;

    (void)state;
    claim_one(pool);
    assert_works(berth_claim_start(pool, NULL, NULL, &ticket, &error), &error);
    assert_int_equal(berth_pool_pending(pool), 1);
    assert_works(berth_cancel(pool, ticket, &error), &error);
    assert_int_equal(berth_pool_pending(pool), 0);
    berth_pool_close(pool);
}

static void pending_counts_blocked_claims_only(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_request *helper = request_of("opportunistic", NULL, NULL);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;

    (void)state;
    claim_one(pool);
    assert_works(berth_claim_start(pool, helper, NULL, &ticket, &error), &error);
    assert_int_equal(berth_pool_pending(pool), 0);
    berth_pool_close(pool);
    berth_request_destroy(helper);
}

static void try_claim_returns_none_when_pool_full(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease lease = {.id = 7};

    (void)state;
    claim_one(pool);
    for (int i = 0; i < 3; i++) {
        assert_fails(berth_try_claim(pool, NULL, &lease, &error), BERTH_ERROR_BUSY, &error,
                     "no free device");
        assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), BERTH_ERROR_BUSY);
    }
    assert_int_equal(lease.id, 7);
    berth_pool_close(pool);
}

static void try_claim_returns_lease_when_capacity_available(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_lease leases[3];

    (void)state;
    assert_int_equal(berth_try_claim(pool, NULL, &leases[0], NULL), 0);
    assert_int_equal(berth_try_claim(pool, NULL, &leases[1], NULL), 0);
    assert_int_not_equal(device_of(pool, leases[0]).index, device_of(pool, leases[1]).index);
    assert_int_equal(berth_try_claim(pool, NULL, &leases[2], NULL), BERTH_ERROR_BUSY);
    berth_pool_close(pool);
}

static void try_claim_returns_none_on_cpu_only_host(void **state)
{
    struct berth_pool *pool = pool_of(0);
    struct berth_lease lease;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), BERTH_ERROR_NO_DEVICE);
    berth_pool_close(pool);
}

static void try_claim_does_not_steal_from_blocked_claimer(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct berth_lease stolen;
    struct claimer claimer;

    (void)state;
    claimer_start(&claimer, pool, NULL);
    await(berth_pool_pending(pool) == 1);
    release(pool, lease);
    assert_int_equal(berth_try_claim(pool, NULL, &stolen, NULL), BERTH_ERROR_BUSY);
    release(pool, claimer_join(&claimer));
    berth_pool_close(pool);
}

static void try_claim_does_not_take_what_a_wider_claim_waits_for(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_request *pair = request_of("gpus", "2", NULL);
    struct berth_lease leases[2] = {claim_one(pool), claim_one(pool)};
    struct berth_lease stolen;
    struct claimer claimer;

    (void)state;
    claimer_start(&claimer, pool, pair);
    await(berth_pool_pending(pool) == 1);
    release(pool, leases[0]);
    assert_int_equal(berth_try_claim(pool, NULL, &stolen, NULL), BERTH_ERROR_BUSY);
    release(pool, leases[1]);
    release(pool, claimer_join(&claimer));
    assert_int_equal(berth_try_claim(pool, NULL, &stolen, NULL), 0);
    berth_pool_close(pool);
    berth_request_destroy(pair);
}

static void try_claim_lease_drop_releases_permit(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease;

    (void)state;
    assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), 0);
    assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), BERTH_ERROR_BUSY);
    release(pool, lease);
    assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), 0);
    berth_pool_close(pool);
}

static void try_claim_does_not_affect_pending_claimers(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease;

    (void)state;
    assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), 0);
    assert_int_equal(berth_pool_pending(pool), 0);
    assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), BERTH_ERROR_BUSY);
    assert_int_equal(berth_pool_pending(pool), 0);
    berth_pool_close(pool);
}

static void sparse_indices_preserved(void **state)
{
    const struct berth_device devices[] = {synth(BERTH_NVIDIA, 0), synth(BERTH_NVIDIA, 2),
                                           synth(BERTH_NVIDIA, 5)};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_device device;
    struct berth_pool *pool = NULL;

    (void)state;
    assert_works(berth_pool_open_devices(devices, 3, NULL, &pool, &error), &error);
    for (size_t i = 0; i < 3; i++) {
        struct berth_lease_device leased = device_of(pool, claim_one(pool));

        assert_int_equal(leased.slot, i);
        assert_int_equal(leased.index, devices[i].index);
        assert_works(berth_pool_device(pool, i, &device, &error), &error);
        assert_int_equal(device.index, devices[i].index);
    }
    berth_pool_close(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_pool_returns_none),
        cmocka_unit_test(single_gpu_serializes_claims),
        cmocka_unit_test(two_gpus_concurrent_leases_distinct_indices),
        cmocka_unit_test(third_claim_waits_until_one_drops),
        cmocka_unit_test(two_intel_arc_cards_both_get_intel_leases),
        cmocka_unit_test(two_nvidia_cards_both_get_nvidia_leases),
        cmocka_unit_test(lease_carries_vendor_for_dispatch),
        cmocka_unit_test(snapshot_leases_reflects_current_state),
        cmocka_unit_test(snapshot_leases_fills_what_there_is_room_for),
        cmocka_unit_test(snapshot_leases_empty_for_cpu_host),
        cmocka_unit_test(snapshot_leases_carries_device_name),
        cmocka_unit_test(pending_claimers_starts_at_zero),
        cmocka_unit_test(pending_claimers_zero_after_unblocked_claim),
        cmocka_unit_test(pending_claimers_increments_during_blocked_claim),
        cmocka_unit_test(pending_claimers_increments_for_multiple_blockers),
        cmocka_unit_test(pending_claimers_decrements_under_cancellation),
        cmocka_unit_test(pending_counts_blocked_claims_only),
        cmocka_unit_test(try_claim_returns_none_when_pool_full),
        cmocka_unit_test(try_claim_returns_lease_when_capacity_available),
        cmocka_unit_test(try_claim_returns_none_on_cpu_only_host),
        cmocka_unit_test(try_claim_does_not_steal_from_blocked_claimer),
        cmocka_unit_test(try_claim_does_not_take_what_a_wider_claim_waits_for),
        cmocka_unit_test(try_claim_lease_drop_releases_permit),
        cmocka_unit_test(try_claim_does_not_affect_pending_claimers),
        cmocka_unit_test(sparse_indices_preserved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
