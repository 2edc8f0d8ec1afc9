/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of ratings does not change decisions: two engines execute the same random history, one
 * with the index and one without.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/quantity.h"
#include "engine/engine.h"
#include "engine/policy/policies.h"
#include "support/engine/machines.h"
#include "support/random.h"
#include "support/steps.h"

enum { HOSTS_MAX = 24, DEVICES_OF_HOST = 8, REQUESTS = 12, LEASES_MAX = 400, STEPS = 400 };

/* A policy whose rating depends on everything that it sees, at random. */
static uint64_t mix(uint64_t one, uint64_t other)
{
    uint64_t sum = (one ^ other) * UINT64_C(0x9e3779b97f4a7c15);

    return sum ^ sum >> 29;
}

static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    uint64_t hash = mix(node->cpus_left, node->memory_left);
    uint64_t left = demand->count;

    (void)policy;
    for (uint32_t i = 0; i < node->count; i++)
        hash = mix(hash, node->left[i] + i);
    hash = mix(hash, demand->share ^ demand->cpus ^ demand->memory ^ node->candidates);
    for (uint32_t i = 0; i < node->order_count && left > 0; i++, left--)
        ret_offer->chosen |= UINT64_C(1) << node->order[i];
    ret_offer->cost = (int64_t)(hash % 5); /* many are equal */
}

static const struct policy hashed = {.name = "hashed", .rate = rate, .cacheable = true};

struct twins {
    struct engine *engines[2]; /* with the index, without the index */
    struct engine_request *requests[2][REQUESTS];
    uint64_t leases[LEASES_MAX]; /* each has the same number in both */
    size_t lease_count;
    struct {
        size_t request;
        uint32_t host;
    } works[LEASES_MAX];
    size_t work_count;
    size_t host_count;
};

static void make_machine(struct test_random *random, size_t hosts, struct machine *ret_machine)
{
    uint32_t index = 0;

    for (size_t i = 0; i < hosts; i++) {
        struct host *host = vector_append(&ret_machine->hosts);
        uint32_t devices = (uint32_t)test_random_below(random, DEVICES_OF_HOST + 1);

        assert_non_null(host);
        host->cpus = optional_number_of(8000 * (1 + test_random_below(random, 8)));
        if (test_random_below(random, 4) > 0)
            host->memory = optional_number_of(UINT64_C(1) << (30 + test_random_below(random, 4)));
        for (uint32_t j = 0; j < devices; j++) {
            enum vendor vendor = test_random_below(random, 6) == 0 ? VENDOR_AMD : VENDOR_NVIDIA;
            struct device *device =
                machine_add(ret_machine, (struct device_id){vendor, index++, DEVICE_NO_MIG});

            device->host = (uint32_t)i;
            device->name = copy_of(test_random_below(random, 2) == 0 ? "A10" : "T4");
            device->memory_total = optional_number_of(UINT64_C(16) << 30);
        }
    }
}

static void make_request(struct test_random *random, size_t device_count,
                         struct request *ret_request)
{
    request_init(ret_request);
    switch (test_random_below(random, 4)) {
    case 0:
        ret_request->gpus = (struct device_count){.min = 0, .max = 0};
        break;
    case 1:
        ret_request->sharing = SHARING_TIME_SLICE;
        ret_request->share = optional_number_of(100000 * (1 + test_random_below(random, 9)));
        break;
    default:
        ret_request->gpus.min = ret_request->gpus.max = 1 + (uint32_t)test_random_below(random, 4);
        break;
    }
    ret_request->cpus = optional_number_of(1000 * (1 + test_random_below(random, 12)));
    if (test_random_below(random, 2) == 0)
        ret_request->host_memory = optional_number_of(UINT64_C(1) << 28);
    if (test_random_below(random, 3) == 0)
        ret_request->model = copy_of(test_random_below(random, 2) == 0 ? "T4" : "a10|t4");
    if (test_random_below(random, 4) == 0)
        ret_request->affinity = copy_of(test_random_below(random, 2) == 0 ? "warm" : "cold");
    if (test_random_below(random, 3) == 0)
        ret_request->time =
            optional_number_of(DURATION_SECOND * (1 + test_random_below(random, 100)));
    for (size_t i = test_random_below(random, 3); i > 0 && device_count > 0; i--) {
        struct device_id *id = vector_append(&ret_request->avoided);

        assert_non_null(id);
        *id = (struct device_id){VENDOR_NVIDIA, (uint32_t)test_random_below(random, device_count),
                                 DEVICE_NO_MIG};
    }
}

/* Returns any of the policies whose ratings may be cached. */
static const struct policy *any_steady(struct test_random *random)
{
    const struct policy *cacheable[32] = {&hashed};
    size_t count = 1;

    for (const struct policy *const *policy = policies; *policy != NULL; policy++) {
        if ((*policy)->rate != NULL && (*policy)->cacheable)
            cacheable[count++] = *policy;
    }
    return cacheable[test_random_below(random, count)];
}

static void begin(struct twins *twins, uint64_t seed)
{
    *twins = (struct twins){0};
    for (size_t i = 0; i < 2; i++) {
        struct test_random random = {seed};
        struct engine_settings settings = {
            .time_slice_tenants = 10,
            .index = i == 0 ? INDEX_ALWAYS : INDEX_NEVER,
            .affinity_by_user = test_random_below(&random, 2) == 0,
        };
        struct machine machine = {0};
        size_t device_count;

        twins->host_count = 1 + test_random_below(&random, HOSTS_MAX);
        make_machine(&random, twins->host_count, &machine);
        device_count = machine.devices.count;
        assert_int_equal(engine_create(&machine, &settings, &twins->engines[i], NULL), 0);
        for (size_t j = 0; j < REQUESTS; j++) {
            struct request request;
            const struct policy *policy = any_steady(&random);

            make_request(&random, device_count, &request);
            if (j == 0) { /* any one device, on the fast path */
                request_finish(&request);
                request_init(&request);
                policy = &policy_first;
            }
            assert_int_equal(engine_request_open(twins->engines[i], &request, NULL, policy,
                                                 &twins->requests[i][j], NULL),
                             0);
            request_finish(&request);
        }
    }
}

static void end(struct twins *twins)
{
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < REQUESTS; j++)
            engine_request_close(twins->engines[i], twins->requests[i][j]);
        engine_destroy(twins->engines[i]);
    }
}

static void check_same_lease(const struct twins *twins, uint64_t lease)
{
    struct lease_view views[2];

    for (size_t i = 0; i < 2; i++)
        assert_true(engine_get_lease(twins->engines[i], lease, &views[i]));
    assert_int_equal(views[0].slot_count, views[1].slot_count);
    assert_memory_equal(views[0].slots, views[1].slots,
                        views[0].slot_count * sizeof(*views[0].slots));
}

static void try_both(struct twins *twins, size_t request)
{
    uint64_t leases[2] = {0, 0};
    int codes[2];

    for (size_t i = 0; i < 2; i++)
        codes[i] = engine_try(twins->engines[i], twins->requests[i][request], &leases[i], NULL);
    assert_int_equal(codes[0], codes[1]);
    if (codes[0] != CLAIM_GRANTED)
        return;
    assert_int_equal(leases[0], leases[1]);
    check_same_lease(twins, leases[0]);
    assert_true(twins->lease_count < LEASES_MAX);
    twins->leases[twins->lease_count++] = leases[0];
}

static void occupy_both(struct twins *twins, size_t request)
{
    uint32_t hosts[2] = {0, 0};
    int codes[2];

    for (size_t i = 0; i < 2; i++)
        codes[i] =
            engine_host_occupy(twins->engines[i], twins->requests[i][request], &hosts[i], NULL);
    assert_int_equal(codes[0], codes[1]);
    if (codes[0] != CLAIM_GRANTED)
        return;
    assert_int_equal(hosts[0], hosts[1]);
    assert_true(twins->work_count < LEASES_MAX);
    twins->works[twins->work_count].request = request;
    twins->works[twins->work_count++].host = hosts[0];
}

static void ask_both(struct twins *twins, size_t request)
{
    if (engine_request_what(twins->requests[0][request])->gpus.max == 0)
        occupy_both(twins, request);
    else
        try_both(twins, request);
}

static void release_both(struct twins *twins, size_t place)
{
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(engine_release(twins->engines[i], twins->leases[place], NULL), 0);
    twins->leases[place] = twins->leases[--twins->lease_count];
}

static void leave_both(struct twins *twins, size_t place)
{
    size_t request = twins->works[place].request;

    for (size_t i = 0; i < 2; i++)
        engine_host_leave(twins->engines[i], twins->requests[i][request], twins->works[place].host);
    twins->works[place] = twins->works[--twins->work_count];
}

/* Advances the time, or changes or removes the time limit of a lease. */
static void let_time_pass(struct twins *twins, struct test_random *random)
{
    int64_t now =
        engine_now(twins->engines[0]) + (int64_t)test_random_below(random, 20) * DURATION_SECOND;
    int64_t expires =
        now + DURATION_SECOND + (int64_t)test_random_below(random, 100) * DURATION_SECOND;
    size_t place = twins->lease_count > 0 ? test_random_below(random, twins->lease_count) : 0;
    bool for_ever = test_random_below(random, 2) == 0;
    int codes[2] = {0, 0};

    for (size_t i = 0; i < 2; i++) {
        engine_advance(twins->engines[i], now);
        if (twins->lease_count > 0)
            codes[i] = engine_extend(twins->engines[i], twins->leases[place],
                                     for_ever ? TIME_NEVER : expires, NULL);
    }
    assert_int_equal(codes[0], codes[1]);
}

/* Changes a device or the rules. */
static void change_both(struct twins *twins, struct test_random *random)
{
    size_t count = engine_machine(twins->engines[0])->devices.count;
    uint32_t slot = (uint32_t)test_random_below(random, count);
    uint64_t what = test_random_below(random, 7);
    uint32_t rank = (uint32_t)test_random_below(random, 3);

    for (size_t i = 0; i < 2; i++) {
        struct engine *engine = twins->engines[i];

        switch (what) {
        case 0:
            engine_block(engine, slot, BLOCK_DIRTY);
            break;
        case 1:
            engine_unblock(engine, slot, BLOCK_DIRTY);
            break;
        case 2:
            engine_device_health(engine, slot, rank == 0 ? HEALTH_SICK : HEALTH_OK);
            break;
        case 3:
            engine_set_rank(engine, slot, rank);
            break;
        case 4:
            engine_device_gone(engine, slot);
            break;
        case 5:
            engine_device_back(engine, slot);
            break;
        default:
            engine_set_rules(engine, &(struct engine_settings){.time_slice_tenants = 3 + rank});
            break;
        }
    }
}

static void live(struct twins *twins, struct test_random *random)
{
    for (size_t step = 0; step < STEPS; step++) {
        uint64_t what = test_random_below(random, 20);

        if (what < 12)
            ask_both(twins, test_random_below(random, REQUESTS));
        else if (what < 16 && twins->lease_count > 0)
            release_both(twins, test_random_below(random, twins->lease_count));
        else if (what < 18 && twins->work_count > 0)
            leave_both(twins, test_random_below(random, twins->work_count));
        else if (what == 18)
            let_time_pass(twins, random);
        else if (engine_machine(twins->engines[0])->devices.count > 0)
            change_both(twins, random);
    }
}

static void cached_ratings_decide_like_new_ones(void **state)
{
    size_t histories = test_steps(150);

    (void)state;
    for (uint64_t seed = 1; seed <= histories; seed++) {
        struct test_random random = {seed * 7919};
        struct twins twins;

        begin(&twins, seed);
        live(&twins, &random);
        end(&twins);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_ratings_decide_like_new_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
