/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads, policies and advice.
 */
#include "support/unit.h"

#include <berth/berth.h>
#include <stdatomic.h>
#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/programs/pools.h"
#include "support/units.h"

static size_t pick_one(struct berth_pool *pool, const struct berth_request *request)
{
    struct berth_error error = BERTH_ERROR_INIT;
    size_t slot = SIZE_MAX;

    assert_works(berth_pick(pool, request, &slot, 1, &error), &error);
    return slot;
}

static struct berth_pool *pool_by(const char *policy, size_t count)
{
    const struct berth_pool_options options = {.size = sizeof(options), .policy = policy};

    return pool_with(count, &options);
}

static void round_robin_picks_alternates(void **state)
{
    struct berth_pool *pool = pool_by("round-robin", 2);

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pick_one(pool, NULL), i % 2);
    berth_pool_close(pool);
}

static void round_robin_is_even_and_skips_what_is_taken(void **state)
{
    struct berth_pool *pool = pool_by("round-robin", 3);
    struct berth_lease lease = claim_one(pool);
    size_t taken = device_of(pool, lease).slot;
    int picks[3] = {0};

    (void)state;
    for (int i = 0; i < 10; i++)
        picks[pick_one(pool, NULL)]++;
    for (size_t slot = 0; slot < 3; slot++)
        assert_int_equal(picks[slot], slot == taken ? 0 : 5);
    berth_pool_close(pool);
}

static void picks_do_not_herd(void **state)
{
    struct berth_pool *pool = pool_by("least-loaded", 4);
    int picks[4] = {0};

    (void)state;
    for (size_t slot = 0; slot < 4; slot++)
        assert_int_equal(berth_report_work(pool, slot, 0, 0, NULL), 0);
    for (int i = 0; i < 8; i++)
        picks[pick_one(pool, NULL)]++;
    for (size_t slot = 0; slot < 4; slot++)
        assert_int_equal(picks[slot], 2);
    berth_pool_close(pool);
}

static void least_loaded_counts_work_at_once(void **state)
{
    struct berth_pool *pool = pool_by("least-loaded", 3);

    (void)state;
    assert_int_equal(berth_report_work(pool, 0, 5, 1, NULL), 0);
    assert_int_equal(berth_report_work(pool, 1, 0, 1, NULL), 0);
    assert_int_equal(berth_report_work(pool, 2, 1, 1, NULL), 0);
    assert_int_equal(pick_one(pool, NULL), 1);
    assert_int_equal(berth_report_work(pool, 1, 9, 0, NULL), 0);
    assert_int_equal(pick_one(pool, NULL), 2);
    berth_pool_close(pool);
}

static void best_available_is_the_most_free_memory(void **state)
{
    const struct berth_pool_options options = {.size = sizeof(options), .policy = "best-available"};
    struct berth_device devices[] = {synth(BERTH_NVIDIA, 0), synth(BERTH_NVIDIA, 1)};
    struct berth_load load = {.memory_free = (int64_t)(2 * GIB), .utilization = BERTH_UNKNOWN};
    struct berth_pool *pool = NULL;
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    devices[0].memory = (int64_t)(80 * GIB);
    devices[1].memory = (int64_t)(16 * GIB);
    assert_works(berth_pool_open_devices(devices, 2, &options, &pool, &error), &error);
    assert_works(berth_report_load(pool, 0, &load, &error), &error);
    load.memory_free = (int64_t)(12 * GIB);
    assert_works(berth_report_load(pool, 1, &load, &error), &error);
    assert_int_equal(device_of(pool, claim_one(pool)).slot, 1);
    berth_pool_close(pool);
}

static void weighted_shares_by_weight(void **state)
{
    struct berth_pool *pool = pool_by("weighted", 2);
    struct berth_error error = BERTH_ERROR_INIT;
    int grants[2] = {0};

    (void)state;
    assert_works(berth_set_weight(pool, 1, 3, &error), &error);
    for (int i = 0; i < 40; i++) {
        struct berth_lease lease = claim_one(pool);

        grants[device_of(pool, lease).slot]++;
        release(pool, lease);
    }
    assert_int_equal(grants[0], 10);
    assert_int_equal(grants[1], 30);
    assert_fails(berth_set_weight(pool, 0, 0, &error), BERTH_ERROR_RANGE, &error,
                 "weight: expected 1 or more, got 0");
    berth_pool_close(pool);
}

static void loads_are_unknown_until_they_are_sampled(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_request *roomy = request_of("min-free", "1GiB", NULL);
    const struct berth_load load = {.memory_free = (int64_t)(2 * GIB),
                                    .utilization = BERTH_UNKNOWN};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease lease;

    (void)state;
    /* An unknown value is neither 0 nor enough: it may become known, so the claim would wait. */
    assert_int_equal(berth_try_claim(pool, roomy, &lease, NULL), BERTH_ERROR_BUSY);
    assert_int_equal(berth_pick(pool, roomy, NULL, 0, &error), BERTH_ERROR_BUSY);
    assert_works(berth_report_load(pool, 1, &load, &error), &error);
    assert_works(berth_try_claim(pool, roomy, &lease, &error), &error);
    assert_int_equal(device_of(pool, lease).slot, 1);
    berth_pool_close(pool);
    berth_request_destroy(roomy);
}

static void a_figure_lets_a_waiting_claim_start(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_request *roomy = request_of("min-free", "1GiB", NULL);
    const struct berth_load load = {.memory_free = (int64_t)(2 * GIB), .utilization = 500};
    struct claimer claimer;

    (void)state;
    claimer_start(&claimer, pool, roomy);
    await(berth_pool_pending(pool) == 1);
    assert_int_equal(berth_report_load(pool, 0, &load, NULL), 0);
    claimer_join(&claimer);
    berth_pool_close(pool);
    berth_request_destroy(roomy);
}

/* A sampler that reports the second device as free. */
struct sampler {
    atomic_int calls;
    atomic_bool swap;
};

static void sample(void *data, size_t slot, struct berth_load *ret_load)
{
    struct sampler *sampler = data;
    bool is_roomy = (slot == 1) != atomic_load(&sampler->swap);

    assert_true(ret_load->memory_free == BERTH_UNKNOWN);
    ret_load->memory_free = (int64_t)((is_roomy ? 8 : 1) * GIB);
    atomic_fetch_add(&sampler->calls, 1);
}

static void the_first_sample_comes_before_the_first_pick(void **state)
{
    struct sampler sampler = {0};
    const struct berth_pool_options options = {.size = sizeof(options),
                                               .policy = "best-available",
                                               .sample = sample,
                                               .sample_data = &sampler,
                                               .sample_interval = 3600 * SECOND};
    struct berth_pool *pool = pool_with(2, &options);

    (void)state;
    assert_int_equal(atomic_load(&sampler.calls), 2);
    assert_int_equal(pick_one(pool, NULL), 1);
    berth_pool_close(pool);
    assert_int_equal(atomic_load(&sampler.calls), 2);
}

static void sampling_goes_on(void **state)
{
    struct sampler sampler = {0};
    const struct berth_pool_options options = {.size = sizeof(options),
                                               .policy = "best-available",
                                               .sample = sample,
                                               .sample_data = &sampler,
                                               .sample_interval = MILLISECOND};
    struct berth_pool *pool = pool_with(2, &options);

    (void)state;
    atomic_store(&sampler.swap, true);
    await(pick_one(pool, NULL) == 0);
    berth_pool_close(pool);
}

/* A program's own policy, with a prescribed answer. */
struct chooser {
    bool answer[4];
    size_t count;
    size_t wanted;
    struct berth_candidate candidates[4];
};

static void choose(void *data, const struct berth_candidate *candidates, size_t count,
                   size_t wanted, bool *ret_chosen)
{
    struct chooser *chooser = data;

    chooser->count = count;
    chooser->wanted = wanted;
    for (size_t i = 0; i < count; i++) {
        chooser->candidates[i] = candidates[i];
        ret_chosen[i] = chooser->answer[i];
    }
}

static void a_policy_of_the_programs_own_chooses(void **state)
{
    struct chooser chooser = {.answer = {false, false, true}};
    const struct berth_pool_options options = {
        .size = sizeof(options), .choose = choose, .choose_data = &chooser};
    struct berth_pool *pool = pool_with(3, &options);
    const struct berth_load load = {.memory_free = 5, .utilization = 250};
    struct berth_request *pair = request_of("gpus", "2", "avoid", "nvidia1", NULL);
    struct berth_lease_device devices[2];
    struct berth_lease lease;

    (void)state;
    assert_int_equal(berth_report_load(pool, 1, &load, NULL), 0);
    assert_int_equal(berth_report_work(pool, 1, 7, 8, NULL), 0);
    lease = claim_one(pool);
    assert_int_equal(device_of(pool, lease).slot, 2);
    release(pool, lease);
    assert_int_equal(berth_claim(pool, pair, 0, &lease, NULL), 0);
    assert_int_equal(chooser.count, 3);
    assert_int_equal(chooser.wanted, 2);
    assert_int_equal(chooser.candidates[1].slot, 1);
    assert_int_equal(chooser.candidates[1].load.memory_free, 5);
    assert_int_equal(chooser.candidates[1].load.utilization, 250);
    assert_true(chooser.candidates[0].load.memory_free == BERTH_UNKNOWN);
    assert_int_equal(chooser.candidates[1].queued, 7);
    assert_int_equal(chooser.candidates[1].active, 8);
    assert_true(chooser.candidates[1].avoid);
    assert_false(chooser.candidates[0].avoid);
    /* The policy chose one device of two: the lowest other device is added. */
    assert_int_equal(berth_lease_devices(pool, lease, devices, 2, NULL), 2);
    assert_int_equal(devices[0].slot, 0);
    assert_int_equal(devices[1].slot, 2);
    release(pool, lease);
    /* The policy chose all devices for one: the lowest is taken. */
    memset(chooser.answer, true, sizeof(chooser.answer));
    assert_int_equal(device_of(pool, claim_one(pool)).slot, 0);
    berth_pool_close(pool);
    berth_request_destroy(pair);
}

static void slots_and_figures_out_of_range_are_refused(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_pool *empty = pool_of(0);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_device device;
    struct berth_load load = {.memory_free = -1, .utilization = BERTH_UNKNOWN};

    (void)state;
    assert_fails(berth_report_work(pool, 2, 0, 0, &error), BERTH_ERROR_RANGE, &error,
                 "slot: expected 0 to 1, got 2");
    assert_fails(berth_report_work(empty, 0, 0, 0, &error), BERTH_ERROR_RANGE, &error,
                 "slot 0: this pool has no devices");
    assert_int_equal(berth_set_weight(pool, 2, 1, NULL), BERTH_ERROR_RANGE);
    assert_int_equal(berth_pool_device(pool, 2, &device, NULL), BERTH_ERROR_RANGE);
    assert_fails(berth_report_load(pool, 0, &load, &error), BERTH_ERROR_RANGE, &error,
                 "memory_free: expected 0 bytes or more, got -1");
    load = (struct berth_load){.memory_free = BERTH_UNKNOWN, .utilization = 1001};
    assert_fails(berth_report_load(pool, 0, &load, &error), BERTH_ERROR_RANGE, &error,
                 "utilization: expected 0 to 1000 thousandths, got 1001");
    load.utilization = 1000;
    assert_int_equal(berth_report_load(pool, 2, &load, NULL), BERTH_ERROR_RANGE);
    berth_pool_close(pool);
    berth_pool_close(empty);
}

static void a_pick_of_several_takes_none(void **state)
{
    struct berth_pool *pool = pool_of(3);
    struct berth_request *pair = request_of("gpus", "2", NULL);
    struct berth_error error = BERTH_ERROR_INIT;
    size_t slots[2] = {9, 9};

    (void)state;
    assert_int_equal(berth_pick(pool, pair, slots, 1, &error), 2);
    assert_int_equal(slots[0], 0);
    assert_int_equal(slots[1], 9);
    assert_int_equal(berth_pick(pool, pair, slots, 2, &error), 2);
    claim_one(pool);
    claim_one(pool);
    /* "No eligible device" is an answer, not a fault. */
    assert_int_equal(berth_pick(pool, pair, slots, 2, &error), BERTH_ERROR_BUSY);
    claim_one(pool);
    assert_int_equal(berth_pick(pool, NULL, slots, 2, &error), BERTH_ERROR_BUSY);
    berth_pool_close(pool);
    berth_request_destroy(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_robin_picks_alternates),
        cmocka_unit_test(round_robin_is_even_and_skips_what_is_taken),
        cmocka_unit_test(picks_do_not_herd),
        cmocka_unit_test(least_loaded_counts_work_at_once),
        cmocka_unit_test(best_available_is_the_most_free_memory),
        cmocka_unit_test(weighted_shares_by_weight),
        cmocka_unit_test(loads_are_unknown_until_they_are_sampled),
        cmocka_unit_test(a_figure_lets_a_waiting_claim_start),
        cmocka_unit_test(the_first_sample_comes_before_the_first_pick),
        cmocka_unit_test(sampling_goes_on),
        cmocka_unit_test(a_policy_of_the_programs_own_chooses),
        cmocka_unit_test(slots_and_figures_out_of_range_are_refused),
        cmocka_unit_test(a_pick_of_several_takes_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
