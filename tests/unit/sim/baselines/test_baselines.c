/* SPDX-License-Identifier: Apache-2.0
 *
 * The policies of the openb study: finding them by name, and their scores, computed by hand from
 * the study's definitions.
 */
#include "support/engine/rated_nodes.h"

#include "engine/policy/node_rating.h"
#include "sim/baselines/baselines.h"
#include "support/failing_allocator.h"

static struct policy_demand with_cpus(struct policy_demand demand, uint64_t cpus)
{
    demand.cpus = cpus;
    return demand;
}

static void scores(const struct rated_nodes *nodes, const struct policy *policy, uint32_t host,
                   struct policy_demand demand, int64_t wanted)
{
    struct policy_offer offer = rated_offer(nodes, policy, host, &demand);

    assert_int_equal(offer.score, wanted);
    assert_int_equal(offer.cost, -wanted);
    assert_true(offer.proven);
}

/* All but random and fgd. */
static const struct policy *const ordinary[] = {&baseline_dotprod, &baseline_clustering,
                                                &baseline_packing, &baseline_bestfit};

static void devices_are_chosen_by_best_fit(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 700, 300, 0, 1000, 300);
    for (size_t i = 0; i < COUNT(ordinary); i++) {
        rated_takes(nodes, ordinary[i], rated_share(300), 2);
        rated_takes(nodes, ordinary[i], rated_share(301), 1);
        rated_takes(nodes, ordinary[i], rated_share(701), 0);
        rated_takes(nodes, ordinary[i], rated_whole(1), 0);
        rated_takes(nodes, ordinary[i], rated_whole(2), 0, 4);
    }
    rated_takes(nodes, &baseline_fgd, rated_whole(2), 0, 4);
}

static void dotprod_prefers_the_smallest_product(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host_with(nodes, 128000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000);
    rated_host_with(nodes, 64000, 500, 0, 0, 0);
    rated_host(nodes, 1000, 1000, 1000, 1000);
    /* (1 * 0.25 + 1 * 0.5) / 2 = 0.375 */
    scores(nodes, &baseline_dotprod, 0, with_cpus(rated_whole(4), 32000), 62);
    /* (0.5 * 0.5 + 0.0625 * 0.0625) / 2 = 0.12695 */
    scores(nodes, &baseline_dotprod, 1, with_cpus(rated_share(500), 64000), 87);
    /* Unknown CPUs: (0 + 0.5 * 0.25) / 2 = 0.0625 */
    scores(nodes, &baseline_dotprod, 2, with_cpus(rated_whole(2), 64000), 93);
    /* (1 * 0.125 + 0) / 2 */
    scores(nodes, &baseline_dotprod, 0, (struct policy_demand){.cpus = 16000}, 93);
    rated_takes(nodes, &baseline_dotprod, with_cpus(rated_share(500), 64000), 12);
    bitset_remove(&nodes->candidates, 12);
    nodes->left[13] = nodes->left[14] = nodes->left[15] = 0;
    rated_takes(nodes, &baseline_dotprod, with_cpus(rated_share(500), 64000), 8);
}

static void bestfit_prefers_the_least_left_over(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host_with(nodes, 128000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000);
    rated_host_with(nodes, 64000, 500, 0, 0, 0);
    rated_host(nodes, 1000, 1000, 1000, 1000);
    /* (0.75 + 0.5) / 2 = 0.625 */
    scores(nodes, &baseline_bestfit, 0, with_cpus(rated_whole(4), 32000), 37);
    /* (0.25 + 0.03125) / 2 = 0.140625 */
    scores(nodes, &baseline_bestfit, 1, with_cpus(rated_share(250), 32000), 85);
    /* Unknown CPUs: (0 + 0.25) / 2 = 0.125 */
    scores(nodes, &baseline_bestfit, 2, with_cpus(rated_whole(2), 32000), 87);
    /* (0.875 + 1) / 2 = 0.9375 */
    scores(nodes, &baseline_bestfit, 0, (struct policy_demand){.cpus = 16000}, 6);
    rated_takes(nodes, &baseline_bestfit, with_cpus(rated_share(250), 32000), 8);
}

/* Nodes may be larger than the study's largest. */
static void larger_nodes_are_rated_too(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host_with(nodes, 512000, 1000, 1000);
    rated_host_with(nodes, UINT64_MAX, 1000, 1000);
    /* (4 + 0.125) / 2 */
    scores(nodes, &baseline_bestfit, 0, rated_whole(1), -106);
    scores(nodes, &baseline_bestfit, 1, rated_whole(1), -INT64_C(1000000000000000));
    scores(nodes, &baseline_dotprod, 1, with_cpus(rated_whole(1), UINT64_MAX),
           -INT64_C(1000000000000000));
}

static void packing_prefers_what_is_in_use(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000, 1000, 1000);
    rated_host(nodes, 1000, 1000, 0, 0);
    rated_host(nodes, 650, 1000, 299);
    rated_host(nodes, 1000);
    scores(nodes, &baseline_packing, 0, rated_share(500), 29);
    scores(nodes, &baseline_packing, 0, rated_whole(4), 29);
    scores(nodes, &baseline_packing, 1, rated_share(500), 49);
    scores(nodes, &baseline_packing, 1, rated_whole(2), 48);
    scores(nodes, &baseline_packing, 2, rated_share(500), 94);
    scores(nodes, &baseline_packing, 2, rated_share(200), 98);
    scores(nodes, &baseline_packing, 2, rated_share(700), 49);
    scores(nodes, &baseline_packing, 3, rated_whole(1), 32);
    scores(nodes, &baseline_packing, 2, (struct policy_demand){.cpus = 1}, 0);
    rated_takes(nodes, &baseline_packing, rated_share(200), 10);
    rated_takes(nodes, &baseline_packing, rated_whole(1), 4);
    rated_takes(nodes, &baseline_packing, rated_whole(4), 0, 1, 2, 3);
}

static void clustering_puts_like_to_like(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 500, 1000, 1000, 1000); /* shares only; 25 * 4500 / 8000 = 14 */
    rated_host(nodes, 0, 0, 1000, 1000);      /* whole ones only; 25 * 6000 / 8000 = 18 */
    rated_host(nodes, 500, 0, 1000, 1000);    /* both; 25 * 5500 / 8000 = 17 */
    rated_host(nodes, 1000, 1000, 1000);      /* neither; 25 * 5000 / 8000 = 15 */
    scores(nodes, &baseline_clustering, 0, rated_share(500), 14 + 75);
    scores(nodes, &baseline_clustering, 1, rated_share(500), 18);
    scores(nodes, &baseline_clustering, 2, rated_share(500), 17 + 50);
    scores(nodes, &baseline_clustering, 3, rated_share(500), 15 + 25);
    scores(nodes, &baseline_clustering, 0, rated_whole(1), 14);
    scores(nodes, &baseline_clustering, 1, rated_whole(1), 18 + 75);
    scores(nodes, &baseline_clustering, 2, rated_whole(2), 17 + 50);
    scores(nodes, &baseline_clustering, 3, rated_whole(1), 15 + 25);
    scores(nodes, &baseline_clustering, 0, (struct policy_demand){.cpus = 1}, 0);
    rated_takes(nodes, &baseline_clustering, rated_share(500), 0);
    rated_takes(nodes, &baseline_clustering, rated_whole(1), 6);
}

static void clustering_tells_holders_apart(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 0, 0, 1000, 1000); /* one holder of two */
    rated_host(nodes, 0, 0, 1000, 1000); /* two holders of one */
    rated_host(nodes, 0, 0, 1000, 1000); /* one holder of one, and shares that fill a device */
    nodes->held_known = true;
    nodes->held[0] = nodes->held[1] = 2;
    nodes->held[4] = nodes->held[5] = 1;
    nodes->held[8] = 1;
    nodes->held[9] = POLICY_SHARED;
    scores(nodes, &baseline_clustering, 0, rated_whole(1), 18);
    scores(nodes, &baseline_clustering, 1, rated_whole(1), 18 + 75);
    scores(nodes, &baseline_clustering, 2, rated_whole(1), 18 + 50);
    scores(nodes, &baseline_clustering, 0, rated_whole(2), 18 + 75);
    scores(nodes, &baseline_clustering, 1, rated_whole(2), 18);
    scores(nodes, &baseline_clustering, 1, rated_share(500), 18);
    scores(nodes, &baseline_clustering, 2, rated_share(500), 18 + 50);
}

static void random_goes_by_the_draw_alone(void **state)
{
    struct rated_nodes *nodes = *state;
    struct policy_demand demand = rated_share(500);

    rated_host(nodes, 1000, 500, 0);
    for (demand.draw = 0; demand.draw < 100; demand.draw++) {
        uint64_t before = 0;
        uint64_t again = 0;

        assert_int_equal(rated_best(nodes, &baseline_random, &demand, &before), 0);
        assert_int_equal(rated_best(nodes, &baseline_random, &demand, &again), 0);
        assert_int_equal(before, again);
    }
    assert_false(baseline_random.cacheable);
}

/* All nodes, and all devices with room, are equally frequent: 10,000 times, within five standard
 * deviations. */
static void random_is_fair(void **state)
{
    enum { TIMES = 10000, FEWEST = TIMES - 480, LIMIT = TIMES + 480 };
    struct rated_nodes *nodes = *state;
    struct policy_demand demand = rated_share(500);
    unsigned counts[RATED_DEVICES] = {0};

    rated_host(nodes, 1000, 1000);
    rated_host(nodes, 0, 500, 0, 1000);
    rated_host(nodes, 400);
    rated_host(nodes, 1000, 1000);
    for (; demand.draw < (uint64_t)6 * TIMES; demand.draw++) {
        uint64_t slots = 0;

        assert_in_range(rated_best(nodes, &baseline_random, &demand, &slots), 0, 3);
        counts[__builtin_ctzll(slots)]++;
    }
    for (size_t slot = 0; slot < 9; slot++) {
        if (nodes->left[slot] >= demand.share)
            assert_in_range(counts[slot], FEWEST, LIMIT);
        else
            assert_int_equal(counts[slot], 0);
    }
}

static void random_takes_any_set(void **state)
{
    struct rated_nodes *nodes = *state;
    struct policy_demand demand = rated_whole(2);
    bool seen[16] = {0};

    rated_host(nodes, 1000, 1000, 1000, 1000);
    for (; demand.draw < 1000; demand.draw++) {
        uint64_t slots = 0;

        assert_int_equal(rated_best(nodes, &baseline_random, &demand, &slots), 0);
        seen[slots] = true;
    }
    for (uint64_t set = 0; set < COUNT(seen); set++)
        assert_int_equal(seen[set], node_rating_size(set) == 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rated_set_up, rated_tear_down)

static void baselines_and_policies_are_found_by_name(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    const struct policy *found = NULL;

    (void)state;
    for (const struct policy *const *baseline = baselines; *baseline != NULL; baseline++) {
        assert_true(strlen((*baseline)->summary) > 0);
        assert_int_equal(baseline_find((*baseline)->name, &found, &error), 0);
        assert_ptr_equal(found, *baseline);
        assert_int_equal(policy_find((*baseline)->name, &found, NULL), BERTH_ERROR_INVALID);
    }
    for (const struct policy *const *policy = policies; *policy != NULL; policy++) {
        assert_int_equal(baseline_find((*policy)->name, &found, &error), 0);
        assert_ptr_equal(found, *policy);
    }
    assert_int_equal(baseline_find(NULL, &found, &error), 0);
    assert_null(found);
    assert_string_equal(error.message, "");
}

static void other_names_are_refused_with_all_names(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    const struct policy *found = &baseline_fgd;

    (void)state;
    assert_int_equal(baseline_find("fgd ", &found, &error), BERTH_ERROR_INVALID);
    assert_ptr_equal(found, &baseline_fgd);
    assert_string_equal(error.message,
                        "expected one of first, round-robin, least-loaded, best-available, "
                        "best-compute, pack, spread, topology, frag, weighted, random, dotprod, "
                        "clustering, packing, bestfit, fgd; got 'fgd '");
}

static int refuse_name(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    const struct policy *found = NULL;
    int code = baseline_find(context, &found, &error);

    assert_null(found);
    return code == BERTH_ERROR_INVALID ? 0 : code;
}

static void out_of_memory_is_reported(void **state)
{
    char name[] = "no-such-policy";

    (void)state;
    assert_true(failing_allocator_try_all(refuse_name, name) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(baselines_and_policies_are_found_by_name),
        cmocka_unit_test(other_names_are_refused_with_all_names),
        cmocka_unit_test(out_of_memory_is_reported),
        TEST(devices_are_chosen_by_best_fit),
        TEST(dotprod_prefers_the_smallest_product),
        TEST(bestfit_prefers_the_least_left_over),
        TEST(larger_nodes_are_rated_too),
        TEST(packing_prefers_what_is_in_use),
        TEST(clustering_puts_like_to_like),
        TEST(clustering_tells_holders_apart),
        TEST(random_goes_by_the_draw_alone),
        TEST(random_is_fair),
        TEST(random_takes_any_set),
    };

    return cmocka_run_group_tests_name("baselines", tests, NULL, NULL);
}
