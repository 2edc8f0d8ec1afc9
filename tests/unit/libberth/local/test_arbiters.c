/* SPDX-License-Identifier: Apache-2.0
 *
 * Arbiters that take spare devices and give them back on demand.
 */
#include "support/unit.h"

#include <berth/berth.h>
#include <stdatomic.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/programs/pools.h"

enum { SLOTS = 4 };

/* The calls of one arbiter's callbacks, and the answers that they give. */
struct helper {
    struct berth_pool *pool;
    struct berth_arbiter *arbiter;
    bool declines[SLOTS]; /* by slot */
    bool gives_back;      /* in take_back */
    bool releases_in_offer;
    bool says_taken; /* although it has released the lease */
    atomic_int offers;
    atomic_int declined;
    atomic_int taken_back;
    atomic_int forced;
    struct berth_lease leases[SLOTS]; /* by slot */
};

static bool offer(void *data, struct berth_lease lease, const struct berth_lease_device *device)
{
    struct helper *helper = data;

    atomic_fetch_add(&helper->offers, 1);
    if (helper->declines[device->slot]) {
        atomic_fetch_add(&helper->declined, 1);
        return false;
    }
    helper->leases[device->slot] = lease;
    if (helper->releases_in_offer)
        berth_release(helper->pool, lease, NULL);
    return !helper->releases_in_offer || helper->says_taken;
}

static void take_back(void *data, struct berth_lease lease)
{
    struct helper *helper = data;

    if (helper->gives_back)
        berth_release(helper->pool, lease, NULL);
    atomic_fetch_add(&helper->taken_back, 1);
}

static void force(void *data, struct berth_lease lease)
{
    struct helper *helper = data;

    berth_release(helper->pool, lease, NULL);
    atomic_fetch_add(&helper->forced, 1);
}

static void start(struct helper *helper, struct berth_pool *pool, size_t max)
{
    const struct berth_arbiter_options options = {
        .size = sizeof(options),
        .max = max,
        .offer = offer,
        .take_back = take_back,
        .force = force,
        .data = helper,
    };
    struct berth_error error = BERTH_ERROR_INIT;

    helper->pool = pool;
    assert_works(berth_arbiter_start(pool, &options, &helper->arbiter, &error), &error);
}

static void what_is_spare_is_offered_at_once(void **state)
{
    struct berth_pool *pool = pool_of(3);
    struct helper helper = {0};

    (void)state;
    claim_one(pool);
    start(&helper, pool, 0);
    assert_int_equal(helper.offers, 2);
    assert_int_equal(device_of(pool, helper.leases[1]).slot, 1);
    assert_int_equal(device_of(pool, helper.leases[2]).slot, 2);
    assert_int_equal(berth_pool_pending(pool), 0);
    berth_arbiter_stop(helper.arbiter);
    release(pool, helper.leases[1]);
    release(pool, helper.leases[2]);
    assert_int_equal(helper.offers, 2);
    berth_pool_close(pool);
}

static void most_leases_are_out_at_once(void **state)
{
    struct berth_pool *pool = pool_of(3);
    struct helper helper = {0};

    (void)state;
    start(&helper, pool, 1);
    assert_int_equal(helper.offers, 1);
    release(pool, helper.leases[0]);
    assert_int_equal(helper.offers, 2);
    berth_arbiter_stop(helper.arbiter);
    berth_pool_close(pool);
}

static void what_becomes_spare_is_offered(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct helper helper = {0};

    (void)state;
    start(&helper, pool, 0);
    assert_int_equal(helper.offers, 0);
    assert_int_equal(berth_pool_pending(pool), 0);
    release(pool, lease);
    assert_int_equal(helper.offers, 1);
    berth_arbiter_stop(helper.arbiter);
    berth_pool_close(pool);
}

static void nothing_is_offered_while_somebody_waits(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_request *pair = request_of("gpus", "2", NULL);
    struct berth_lease leases[2] = {claim_one(pool), claim_one(pool)};
    struct helper helper = {0};
    struct claimer claimer;

    (void)state;
    claimer_start(&claimer, pool, pair);
    await(berth_pool_pending(pool) == 1);
    start(&helper, pool, 0);
    release(pool, leases[0]);
    assert_int_equal(helper.offers, 0);
    release(pool, leases[1]);
    leases[0] = claimer_join(&claimer);
    assert_int_equal(helper.offers, 0);
    release(pool, leases[0]);
    assert_int_equal(helper.offers, 2);
    berth_arbiter_stop(helper.arbiter);
    berth_pool_close(pool);
    berth_request_destroy(pair);
}

static void a_claim_takes_a_device_back(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct helper helper = {.gives_back = true};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease lease;
    struct berth_lease other;

    (void)state;
    start(&helper, pool, 0);
    assert_int_equal(helper.offers, 2);
    assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), BERTH_ERROR_BUSY);
    assert_int_equal(helper.taken_back, 0);
    assert_works(berth_claim(pool, NULL, TIMEOUT, &lease, &error), &error);
    assert_int_equal(helper.taken_back, 1);
    assert_works(berth_claim(pool, NULL, TIMEOUT, &other, &error), &error);
    assert_int_equal(helper.taken_back, 2);
    assert_int_equal(helper.forced, 0);
    assert_int_equal(helper.offers, 2);
    release(pool, lease);
    assert_int_equal(helper.offers, 3);
    berth_arbiter_stop(helper.arbiter);
    berth_pool_close(pool);
}

static void who_does_not_give_back_is_forced(void **state)
{
    const struct berth_pool_options options = {.size = sizeof(options), .grace = MILLISECOND};
    struct berth_pool *pool = pool_with(1, &options);
    struct helper helper = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease lease;

    (void)state;
    start(&helper, pool, 0);
    assert_works(berth_claim(pool, NULL, TIMEOUT, &lease, &error), &error);
    await(atomic_load(&helper.forced) == 1);
    assert_int_equal(helper.taken_back, 1);
    release(pool, lease);
    berth_arbiter_stop(helper.arbiter);
    berth_pool_close(pool);
}

static void what_is_declined_is_offered_after_the_next_change(void **state)
{
    struct berth_pool *pool = pool_of(3);
    struct berth_lease lease = claim_one(pool);
    struct helper helper = {.declines = {true, true, false}};

    (void)state;
    start(&helper, pool, 0);
    /* The helper declines device 1 and accepts device 2. */
    assert_int_equal(helper.offers, 2);
    assert_int_equal(helper.declined, 1);
    /* A declined device is free for every claim. */
    release(pool, claim_one(pool));
    assert_int_equal(helper.offers, 3);
    assert_int_equal(helper.declined, 2);
    release(pool, lease);
    assert_int_equal(helper.declined, 4);
    helper.declines[0] = false;
    helper.declines[1] = false;
    release(pool, helper.leases[2]);
    assert_int_equal(helper.declined, 4);
    assert_int_equal(device_of(pool, helper.leases[0]).slot, 0);
    assert_int_equal(device_of(pool, helper.leases[1]).slot, 1);
    assert_int_equal(device_of(pool, helper.leases[2]).slot, 2);
    berth_arbiter_stop(helper.arbiter);
    berth_pool_close(pool);
}

static void what_is_released_within_the_offer_counts_as_declined(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_lease lease = claim_one(pool);
    struct helper helper = {.releases_in_offer = true};
    struct berth_slot slots[2];

    (void)state;
    for (int says_taken = 0; says_taken < 2; says_taken++) {
        helper.says_taken = says_taken;
        start(&helper, pool, 0);
        assert_int_equal(helper.offers, 1 + 3 * says_taken);
        release(pool, lease);
        assert_int_equal(helper.offers, 2 + 3 * says_taken);
        lease = claim_one(pool);
        release(pool, lease);
        assert_int_equal(helper.offers, 3 + 3 * says_taken);
        berth_arbiter_stop(helper.arbiter);
        assert_int_equal(berth_snapshot_leases(pool, slots, 2), 2);
        assert_false(slots[0].leased || slots[1].leased);
        lease = claim_one(pool);
    }
    berth_pool_close(pool);
}

static void two_arbiters_do_not_chase_each_other(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct helper helpers[2] = {{.declines = {true}}, {.declines = {true}}};

    (void)state;
    start(&helpers[0], pool, 0);
    start(&helpers[1], pool, 0);
    release(pool, lease);
    assert_in_range(helpers[0].offers, 1, 2);
    assert_in_range(helpers[1].offers, 1, 2);
    for (size_t i = 0; i < COUNT(helpers); i++)
        berth_arbiter_stop(helpers[i].arbiter);
    berth_pool_close(pool);
}

static void leases_outlive_their_arbiter(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct helper helper = {0};
    struct claimer claimer;

    (void)state;
    start(&helper, pool, 0);
    berth_arbiter_stop(helper.arbiter);
    claimer_start(&claimer, pool, NULL);
    await(berth_pool_pending(pool) == 1);
    assert_int_equal(helper.taken_back, 0);
    release(pool, helper.leases[0]);
    claimer_join(&claimer);
    berth_pool_close(pool);
}

static void closing_stops_arbiters(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct helper helpers[2] = {{0}};

    (void)state;
    start(&helpers[0], pool, 1);
    start(&helpers[1], pool, 0);
    berth_pool_close(pool);
    assert_int_equal(helpers[0].offers, 1);
    assert_int_equal(helpers[1].offers, 1);
}

static void callbacks_are_needed(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_arbiter_options options = {.size = sizeof(options), .offer = offer};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_arbiter *arbiter;

    (void)state;
    assert_fails(berth_arbiter_start(pool, &options, &arbiter, &error), BERTH_ERROR_INVALID, &error,
                 "arbiter: expected the callbacks offer and take_back, got none for take_back");
    options = (struct berth_arbiter_options){.size = sizeof(options), .take_back = take_back};
    assert_int_equal(berth_arbiter_start(pool, &options, &arbiter, NULL), BERTH_ERROR_INVALID);
    assert_int_equal(berth_arbiter_start(pool, NULL, &arbiter, NULL), BERTH_ERROR_INVALID);
    berth_pool_close(pool);
}

/* ---- Helpers among many claimers ---- */

enum { CLAIMERS = 4, ROUNDS = 300 };

static void *claim_often(void *argument)
{
    struct berth_pool *pool = argument;
    struct berth_lease lease;

    for (int i = 0; i < ROUNDS; i++) {
        if (berth_claim(pool, NULL, BERTH_FOR_EVER, &lease, NULL) < 0 ||
            berth_release(pool, lease, NULL) < 0)
            return argument;
    }
    return NULL;
}

static void helpers_give_way_to_many(void **state)
{
    struct berth_pool *pool = pool_of(SLOTS);
    struct helper helper = {.gives_back = true};
    pthread_t threads[CLAIMERS];

    (void)state;
    start(&helper, pool, 0);
    for (size_t i = 0; i < CLAIMERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, claim_often, pool), 0);
    for (size_t i = 0; i < CLAIMERS; i++) {
        void *failed;

        failed = join_thread(threads[i]);
        assert_null(failed);
    }
    berth_arbiter_stop(helper.arbiter);
    assert_int_equal(helper.forced, 0);
    berth_pool_close(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_spare_is_offered_at_once),
        cmocka_unit_test(most_leases_are_out_at_once),
        cmocka_unit_test(what_becomes_spare_is_offered),
        cmocka_unit_test(nothing_is_offered_while_somebody_waits),
        cmocka_unit_test(a_claim_takes_a_device_back),
        cmocka_unit_test(who_does_not_give_back_is_forced),
        cmocka_unit_test(what_is_declined_is_offered_after_the_next_change),
        cmocka_unit_test(what_is_released_within_the_offer_counts_as_declined),
        cmocka_unit_test(two_arbiters_do_not_chase_each_other),
        cmocka_unit_test(leases_outlive_their_arbiter),
        cmocka_unit_test(closing_stops_arbiters),
        cmocka_unit_test(callbacks_are_needed),
        cmocka_unit_test(helpers_give_way_to_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
