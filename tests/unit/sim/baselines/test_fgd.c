/* SPDX-License-Identifier: Apache-2.0
 *
 * fgd compared with the definition of fragmentation, summed request by request without tables.
 */
#include "support/engine/rated_nodes.h"

#include "engine/policy/node_rating.h"
#include "sim/baselines/baselines.h"
#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"

enum { MODELS = 3 };

/* A cluster with several models of GPUs; each typical request accepts some of them. */
struct world {
    struct rated_nodes nodes;
    struct bitset accepts[1 << MODELS];
    uint32_t model_of[RATED_DEVICES];
};

static int set_up(void **state)
{
    struct world *world = malloc(sizeof(*world));

    assert_non_null(world);
    *world = (struct world){0};
    rated_init(&world->nodes);
    for (size_t i = 0; i < COUNT(world->accepts); i++)
        assert_int_equal(bitset_init(&world->accepts[i], RATED_DEVICES), 0);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    for (size_t i = 0; i < COUNT(world->accepts); i++)
        bitset_finish(&world->accepts[i]);
    rated_finish(&world->nodes);
    free(world);
    return 0;
}

/* Finds the devices of each set of models; call it after adding all devices. */
static void find_accepted(struct world *world)
{
    for (size_t models = 0; models < COUNT(world->accepts); models++) {
        bitset_clear(&world->accepts[models]);
        for (size_t slot = 0; slot < world->nodes.machine.devices.count; slot++) {
            if ((models >> world->model_of[slot] & 1) != 0)
                bitset_add(&world->accepts[models], slot);
        }
    }
}

static void expect(struct world *world, uint32_t weight, uint64_t cpus, struct policy_demand demand,
                   size_t models)
{
    assert_true(world->nodes.typical_count < RATED_TYPICAL);
    world->nodes.typical[world->nodes.typical_count++] = (struct policy_typical){
        .weight = weight,
        .count = demand.count,
        .share = demand.share,
        .cpus = cpus,
        .accepts = &world->accepts[models],
    };
}

static uint64_t weight_of_all(const struct world *world)
{
    uint64_t weight = 0;

    for (size_t i = 0; i < world->nodes.typical_count; i++)
        weight += world->nodes.typical[i].weight;
    return weight;
}

/* Returns the free part of the devices that the request cannot use. */
static uint64_t fragment_for(const struct policy_node *node, const uint32_t *left, uint64_t cpus,
                             const struct policy_typical *typical)
{
    uint64_t all = 0;
    uint64_t unfit = 0;
    uint32_t fit = 0;

    for (uint32_t i = 0; i < node->count; i++) {
        bool fits = typical->count > 0 && bitset_has(typical->accepts, node->slots[i]) &&
                    left[i] >= typical->share;

        all += left[i];
        fit += fits;
        unfit += fits ? 0 : left[i];
    }
    return typical->count == 0 || cpus < typical->cpus || fit < typical->count ? all : unfit;
}

/* Returns the fragmentation of a node, multiplied by the sum of all weights. */
static int64_t fragmentation(const struct world *world, const struct policy_node *node,
                             const uint32_t *left, uint64_t cpus)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < world->nodes.typical_count; i++)
        sum += world->nodes.typical[i].weight *
               fragment_for(node, left, cpus, &world->nodes.typical[i]);
    return (int64_t)sum;
}

/* The exponential function, by its series. */
static double exponential(double number)
{
    double term = 1;
    double sum = 1;

    if (number < 0)
        return 1 / exponential(-number);
    for (int i = 1; i < 200; i++) {
        term *= number / i;
        sum += term;
    }
    return sum;
}

static int64_t score_if(const struct world *world, const struct policy_node *node,
                        struct policy_demand demand, uint64_t chosen)
{
    uint64_t cpus = node->cpus_left;
    uint32_t left[POLICY_NODE_MAX];
    int64_t fall;

    for (uint32_t i = 0; i < node->count; i++)
        left[i] = node->left[i] - ((chosen >> i & 1) != 0 ? demand.share : 0);
    fall = fragmentation(world, node, node->left, cpus) -
           fragmentation(world, node, left, cpus == UINT64_MAX ? cpus : cpus - demand.cpus);
    return (int64_t)(100 /
                     (1 + exponential(-(double)fall / SHARE_WHOLE / (double)weight_of_all(world))));
}

/* Chooses as the study does: for a share the first of the best devices, else the lowest. */
static uint64_t choose_slowly(const struct world *world, const struct policy_node *node,
                              struct policy_demand demand)
{
    uint64_t best = 0;
    int64_t best_score = -1;

    if (demand.share == SHARE_WHOLE || demand.count == 0)
        return node_rating_first(node, node->candidates, demand.count);
    node_rating_for_each (device, node->candidates) {
        int64_t score = score_if(world, node, demand, node_rating_bit(device));

        if (score > best_score) {
            best_score = score;
            best = node_rating_bit(device);
        }
    }
    return best;
}

static void check(const struct world *world, struct policy_demand demand)
{
    for (uint32_t host = 0; host < world->nodes.machine.hosts.count; host++) {
        struct rated_view view;
        struct policy_offer offer;

        if (!rated_has_room(&world->nodes, host, &demand))
            continue;
        rated_show(&world->nodes, NULL, host, &demand, &view);
        offer = rated_offer(&world->nodes, &baseline_fgd, host, &demand);
        assert_int_equal(offer.chosen, choose_slowly(world, &view.node, demand));
        assert_int_equal(offer.score, score_if(world, &view.node, demand, offer.chosen));
        assert_int_equal(offer.cost, -offer.score);
    }
}

/* Half devices are expected, so a free half or three quarters is usable; a quarter is not. */
static void a_share_goes_where_it_leaves_no_useless_rest(void **state)
{
    struct world *world = *state;

    rated_host(&world->nodes, 1000, 750, 500);
    rated_host(&world->nodes, 1000, 250, 0);
    find_accepted(world);
    expect(world, 1, 0, rated_share(500), 1);
    rated_takes(&world->nodes, &baseline_fgd, rated_share(250), 4);
    rated_takes(&world->nodes, &baseline_fgd, rated_share(500), 0);
    world->nodes.left[4] = 0;
    rated_takes(&world->nodes, &baseline_fgd, rated_share(250), 0);
    world->nodes.left[0] = 500 * THOUSANDTH;
    bitset_remove(&world->nodes.candidates, 3);
    rated_takes(&world->nodes, &baseline_fgd, rated_share(250), 1);
    check(world, rated_share(250));
    check(world, rated_share(500));
}

/* If nothing changes, the score is exactly the middle; rounding must not lower it. */
static void what_changes_nothing_has_the_middle_score(void **state)
{
    struct world *world = *state;
    struct policy_demand demand = {.cpus = 1000};
    struct policy_offer offer;

    rated_host_with(&world->nodes, 10000, 100, 300, 700, 1000);
    find_accepted(world);
    expect(world, 3, 2000, rated_share(300), 1);
    expect(world, 7, 9000, rated_share(100), 1);
    expect(world, 1, 0, rated_whole(2), 1);
    offer = rated_offer(&world->nodes, &baseline_fgd, 0, &demand);
    assert_int_equal(offer.score, 50);
    demand.cpus = 1001; /* too few are left for 7 of 11, which could use 2.1 devices */
    offer = rated_offer(&world->nodes, &baseline_fgd, 0, &demand);
    assert_int_equal(offer.score, 20);
    check(world, demand);
}

static void work_without_devices_goes_where_cpus_are_not_missed(void **state)
{
    struct world *world = *state;
    struct policy_demand demand = {.cpus = 8000};

    rated_host_with(&world->nodes, 16000, 1000, 1000);
    rated_host_with(&world->nodes, 16000, 0, 0);
    find_accepted(world);
    expect(world, 1, 16000, rated_whole(1), 1);
    rated_goes_to(&world->nodes, &baseline_fgd, demand, 1);
    check(world, demand);
}

static void nothing_expected_makes_all_equal(void **state)
{
    struct world *world = *state;

    rated_host(&world->nodes, 250, 1000);
    rated_host(&world->nodes, 1000, 1000);
    find_accepted(world);
    rated_takes(&world->nodes, &baseline_fgd, rated_whole(1), 1);
    rated_takes(&world->nodes, &baseline_fgd, rated_share(100), 0);
}

static void enormous_weights_are_cut(void **state)
{
    struct world *world = *state;

    rated_host(&world->nodes, 1000, 750, 250);
    find_accepted(world);
    for (int i = 0; i < 40; i++)
        expect(world, UINT32_MAX, 0, rated_share(500), 1);
    rated_takes(&world->nodes, &baseline_fgd, rated_share(250), 2);
    rated_takes(&world->nodes, &baseline_fgd, rated_share(500), 0);
}

static struct policy_demand make_demand(struct test_random *random)
{
    static const uint32_t counts[] = {1, 1, 2, 2, 3, 4};
    struct policy_demand demand = {0};

    switch (test_random_below(random, 4)) {
    case 0:
        demand = rated_whole(counts[test_random_below(random, COUNT(counts))]);
        break;
    case 1:
        break;
    default:
        demand = rated_share(50 * (1 + (uint32_t)test_random_below(random, 19)));
    }
    demand.cpus = 1000 * test_random_below(random, 9);
    return demand;
}

static void make_hosts(struct world *world, struct test_random *random)
{
    for (uint32_t host = 0; host < 3; host++) {
        uint32_t count = (uint32_t)test_random_below(random, 9);
        uint32_t model = (uint32_t)test_random_below(random, MODELS);
        bool mixed = test_random_below(random, 3) == 0;
        size_t first = world->nodes.machine.devices.count;
        struct optional_number cpus = {.known = test_random_below(random, 4) > 0,
                                       .value = 1000 * test_random_below(random, 17)};
        uint32_t left[8];

        for (uint32_t i = 0; i < count; i++) {
            left[i] = test_random_below(random, 2) == 0
                          ? 1000
                          : 50 * (uint32_t)test_random_below(random, 21);
            world->model_of[first + i] =
                mixed ? (uint32_t)test_random_below(random, MODELS) : model;
        }
        rated_add_host(&world->nodes, cpus, left, count);
    }
}

static void the_tables_say_what_adding_up_says(void **state)
{
    struct test_random random = {1};

    (void)state;
    for (unsigned long step = test_steps(3000); step > 0; step--) {
        void *made;
        struct world *world;

        set_up(&made);
        world = made;
        make_hosts(world, &random);
        find_accepted(world);
        for (size_t count = 1 + test_random_below(&random, 12); count > 0; count--) {
            uint32_t weight = 1 + (uint32_t)test_random_below(&random, 50);
            struct policy_demand demand = make_demand(&random);

            if (demand.count > 1 && test_random_below(&random, 4) == 0)
                demand.share = SHARE_WHOLE / 2; /* several devices, a part of each */
            expect(world, weight, demand.cpus, demand,
                   test_random_below(&random, COUNT(world->accepts)));
        }
        check(world, make_demand(&random));
        tear_down(&made);
    }
}

static int prepare_once(void *context)
{
    struct world *world = context;
    struct policy_environment around = {
        .machine = &world->nodes.machine,
        .typical = world->nodes.typical,
        .typical_count = world->nodes.typical_count,
    };
    void *tables = NULL;
    int code = baseline_fgd.prepare(&baseline_fgd, &around, &tables);

    assert_int_equal(code < 0, tables == NULL);
    baseline_fgd.forget(tables);
    return code;
}

static void lack_of_memory_is_told(void **state)
{
    struct world *world = *state;

    rated_host(&world->nodes, 1000, 750, 250);
    find_accepted(world);
    expect(world, 1, 0, rated_share(500), 1);
    expect(world, 1, 0, rated_whole(2), 1);
    assert_true(failing_allocator_try_all(prepare_once, world) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_share_goes_where_it_leaves_no_useless_rest),
        TEST(what_changes_nothing_has_the_middle_score),
        TEST(work_without_devices_goes_where_cpus_are_not_missed),
        TEST(nothing_expected_makes_all_equal),
        TEST(enormous_weights_are_cut),
        cmocka_unit_test(the_tables_say_what_adding_up_says),
        TEST(lack_of_memory_is_told),
    };

    return cmocka_run_group_tests_name("fgd", tests, NULL, NULL);
}
