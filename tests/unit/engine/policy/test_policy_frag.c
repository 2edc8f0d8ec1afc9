/* SPDX-License-Identifier: Apache-2.0
 *
 * frag: prices of parts, the worth of free capacity, and the choices that follow.
 */
#include "support/engine/rated_nodes.h"

#include <string.h>

#include "engine/policy/frag_tables.h"

/* Adds an expected request with a weight. */
static void expect(struct rated_nodes *nodes, uint32_t weight, uint32_t count, uint32_t thousandths,
                   uint64_t cpus)
{
    assert_true(nodes->typical_count < RATED_TYPICAL);
    nodes->typical[nodes->typical_count++] = (struct policy_typical){
        .weight = weight,
        .count = count,
        .share = thousandths * THOUSANDTH,
        .cpus = cpus,
        .accepts = &nodes->candidates,
    };
}

/* Checks the price of so many hundredths of a device. */
static void price(const int64_t *by_parts, int hundredths, int64_t min, int64_t max)
{
    int64_t prices[FRAG_PRICES + 1];

    frag_tables_find_prices(by_parts, prices);
    assert_int_equal(prices[0], 0);
    assert_int_equal(prices[FRAG_PRICES], FRAG_PRICE_WHOLE);
    for (int left = 1; left <= FRAG_PRICES; left++)
        assert_true(prices[left] >= prices[left - 1]);
    assert_in_range(prices[hundredths * FRAG_PRICES / 100], min, max);
}

static void halves_cost_half(void **state)
{
    int64_t by_parts[FRAG_PARTS + 1] = {0};

    (void)state;
    by_parts[500] = 100;
    price(by_parts, 50, FRAG_PRICE_WHOLE / 2 - 2, FRAG_PRICE_WHOLE / 2 + 2);
    price(by_parts, 49, 0, 0); /* nobody can use it */
}

/* Only requests for 81 % and for 50 % are expected. None fits beside 81 %, which therefore costs
 * nearly the whole device. */
static void what_nothing_fits_beside_costs_the_whole(void **state)
{
    int64_t by_parts[FRAG_PARTS + 1] = {0};

    (void)state;
    by_parts[810] = 100;
    by_parts[500] = 100;
    price(by_parts, 81, FRAG_PRICE_WHOLE * 9 / 10, FRAG_PRICE_WHOLE);
    price(by_parts, 50, FRAG_PRICE_WHOLE * 4 / 10, FRAG_PRICE_WHOLE * 6 / 10);
}

/* A rare small size, of which many fit on a device: no price becomes negative. */
static void one_of_a_kind_has_a_price(void **state)
{
    int64_t by_parts[FRAG_PARTS + 1] = {0};

    (void)state;
    by_parts[10] = 1;
    price(by_parts, 50, FRAG_PRICE_WHOLE / 2 - FRAG_PRICE_WHOLE / 50,
          FRAG_PRICE_WHOLE / 2 + FRAG_PRICE_WHOLE / 50);
    by_parts[1000] = 1;
    price(by_parts, 1, 0, FRAG_PRICE_WHOLE / 50);
    for (int parts = 1; parts <= FRAG_PARTS; parts++)
        by_parts[parts] = 1;
    price(by_parts, 50, 1, FRAG_PRICE_WHOLE);
}

static void nothing_expected_has_no_price(void **state)
{
    int64_t by_parts[FRAG_PARTS + 1] = {0};
    int64_t prices[FRAG_PRICES + 1];

    (void)state;
    frag_tables_find_prices(by_parts, prices);
    for (int left = 0; left <= FRAG_PRICES; left++)
        assert_int_equal(prices[left], 0);
}

/* A share goes where it fills a device, not where it leaves an unusable rest. */
static void shares_fill_up(void **state)
{
    struct rated_nodes nodes;

    (void)state;
    rated_init(&nodes);
    rated_host(&nodes, 800, 600);
    expect(&nodes, 10, 1, 600, 0);
    expect(&nodes, 10, 1, 400, 0);
    rated_takes(&nodes, &policy_frag, rated_share(600), 1); /* 800 has room for two of 400 */
    rated_takes(&nodes, &policy_frag, rated_share(400), 0); /* and 600 for one of 600 */
    rated_finish(&nodes);
}

/* Devices without CPUs left are of little use. A request that needs no CPUs takes those. */
static void requests_go_where_their_cpus_are(void **state)
{
    struct rated_nodes nodes;
    struct policy_demand demand = rated_whole(1);

    (void)state;
    rated_init(&nodes);
    rated_host_with(&nodes, 96000, 1000, 1000, 0, 0);
    rated_host_with(&nodes, 96000, 1000, 1000, 0, 0);
    nodes.cpus_left[1] = 6000;
    expect(&nodes, 10, 1, 1000, 2000);
    expect(&nodes, 10, 1, 1000, 24000);
    demand.cpus = 2000;
    rated_takes(&nodes, &policy_frag, demand, 4);
    demand.cpus = 24000;
    rated_takes(&nodes, &policy_frag, demand, 0);
    rated_finish(&nodes);
}

/* Work without devices goes where it makes no device useless. */
static void work_without_devices_keeps_off_free_ones(void **state)
{
    struct policy_demand demand = {.cpus = 16000};
    struct rated_nodes nodes;

    (void)state;
    rated_init(&nodes);
    rated_host_with(&nodes, 32000, 1000, 1000);
    rated_host_with(&nodes, 32000, 0, 0);
    expect(&nodes, 10, 1, 1000, 12000);
    expect(&nodes, 10, 0, 0, 16000);
    rated_goes_to(&nodes, &policy_frag, demand, 1);
    rated_finish(&nodes);
}

/* A node in use comes before an empty node. */
static void whole_nodes_stay_whole(void **state)
{
    struct rated_nodes nodes;

    (void)state;
    rated_init(&nodes);
    rated_host(&nodes, 1000, 1000, 1000, 1000);
    rated_host(&nodes, 1000, 1000, 0, 0);
    expect(&nodes, 10, 1, 1000, 0);
    expect(&nodes, 1, 4, 1000, 0);
    rated_takes(&nodes, &policy_frag, rated_whole(1), 4);
    rated_takes(&nodes, &policy_frag, rated_whole(2), 4, 5);
    rated_takes(&nodes, &policy_frag, rated_whole(3), 0, 1, 2);
    rated_finish(&nodes);
}

/* A request that fits any device leaves the devices that other requests need. */
static void scarce_devices_are_spared(void **state)
{
    struct bitset only_first;
    struct rated_nodes nodes;

    (void)state;
    rated_init(&nodes);
    rated_host(&nodes, 1000, 1000);
    rated_host(&nodes, 1000, 1000);
    assert_int_equal(bitset_init(&only_first, RATED_DEVICES), 0);
    bitset_add(&only_first, 0);
    bitset_add(&only_first, 1);
    expect(&nodes, 10, 1, 1000, 0);
    rated_takes(&nodes, &policy_frag, rated_whole(1), 0);
    expect(&nodes, 10, 1, 1000, 0);
    nodes.typical[1].accepts = &only_first;
    rated_takes(&nodes, &policy_frag, rated_whole(1), 2);
    bitset_finish(&only_first);
    rated_finish(&nodes);
}

/* Without expected requests, the fullest device with room comes first. */
static void without_expectations_what_is_used_is_used_up(void **state)
{
    struct rated_nodes nodes;

    (void)state;
    rated_init(&nodes);
    rated_host(&nodes, 1000, 1000);
    rated_host(&nodes, 1000, 400);
    rated_takes(&nodes, &policy_frag, rated_share(300), 3);
    rated_takes(&nodes, &policy_frag, rated_whole(1), 2);
    rated_finish(&nodes);
}

/* Extreme hosts and weights do not overflow. */
static void the_largest_numbers_do_not_overflow(void **state)
{
    struct policy_demand demand = rated_share(1);
    struct rated_nodes nodes;
    uint64_t slots;

    (void)state;
    rated_init(&nodes);
    rated_host_with(&nodes, UINT64_MAX - 1, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000);
    rated_host_with(&nodes, 0, 1000);
    rated_host_with(&nodes, 1, 1000);
    expect(&nodes, UINT32_MAX, 1, 1, UINT64_MAX - 1);
    expect(&nodes, UINT32_MAX, REQUEST_COUNT_MAX, 1000, 1);
    expect(&nodes, 1, 0, 0, UINT64_MAX);
    assert_true(rated_best(&nodes, &policy_frag, &demand, &slots) < 3);
    demand.cpus = UINT64_MAX - 1;
    assert_int_equal(rated_best(&nodes, &policy_frag, &demand, &slots), 0);
    rated_finish(&nodes);
}

/* Equal parts fill a device, even if they are not whole thousandths. */
static void equal_parts_use_a_device_up(void **state)
{
    (void)state;
    for (uint32_t parts = 2; parts <= 16; parts++) {
        struct policy_typical typical = {.weight = 1, .count = 1, .share = SHARE_WHOLE / parts};
        struct frag_tables *tables;
        struct rated_nodes nodes;
        struct policy_environment around = {.typical = &typical, .typical_count = 1};
        uint32_t left = SHARE_WHOLE;

        rated_init(&nodes);
        rated_host(&nodes, 1000);
        around.machine = &nodes.machine;
        typical.accepts = &nodes.candidates;
        assert_int_equal(frag_tables_create(&around, &tables), 0);
        for (uint32_t i = 0; i < parts; i++) {
            uint32_t after = left - typical.share;

            assert_true(tables->usable[left / FRAG_MILLIONTHS] >
                        tables->usable[after / FRAG_MILLIONTHS]);
            left = after;
        }
        frag_tables_destroy(tables);
        rated_finish(&nodes);
    }
}

/* With the default expectations, a device in use comes first. */
static void a_pool_that_was_told_nothing_packs(void **state)
{
    static const uint32_t sizes[][2] = {{1, 125},  {1, 250},  {1, 500}, {1, 1000},
                                        {2, 1000}, {4, 1000}, {8, 1000}};
    struct rated_nodes nodes;

    (void)state;
    rated_init(&nodes);
    rated_host(&nodes, 1000, 1000, 875, 1000);
    for (size_t i = 0; i < COUNT(sizes); i++)
        expect(&nodes, 1, sizes[i][0], sizes[i][1], 0);
    rated_takes(&nodes, &policy_frag, rated_share(125), 2);
    rated_takes(&nodes, &policy_frag, rated_share(250), 2);
    rated_takes(&nodes, &policy_frag, rated_share(500), 2);
    rated_finish(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_cost_half),
        cmocka_unit_test(what_nothing_fits_beside_costs_the_whole),
        cmocka_unit_test(one_of_a_kind_has_a_price),
        cmocka_unit_test(nothing_expected_has_no_price),
        cmocka_unit_test(shares_fill_up),
        cmocka_unit_test(requests_go_where_their_cpus_are),
        cmocka_unit_test(work_without_devices_keeps_off_free_ones),
        cmocka_unit_test(whole_nodes_stay_whole),
        cmocka_unit_test(scarce_devices_are_spared),
        cmocka_unit_test(without_expectations_what_is_used_is_used_up),
        cmocka_unit_test(equal_parts_use_a_device_up),
        cmocka_unit_test(a_pool_that_was_told_nothing_packs),
        cmocka_unit_test(the_largest_numbers_do_not_overflow),
    };

    return cmocka_run_group_tests_name("policy_frag", tests, NULL, NULL);
}
