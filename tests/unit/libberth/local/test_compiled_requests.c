/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests: their properties, and one request with several pools and threads.
 */
#include "support/unit.h"

#include <berth/berth.h>
#include <string.h>

#include "base/count.h"
#include "spec/request_options.h"
#include "support/assert_error.h"
#include "support/programs/pools.h"

static void every_property_of_the_command_line_is_there(void **state)
{
    static const struct {
        const char *name;
        const char *value;
    } properties[] = {
        {"gpus", "A100:2-4"},     {"replicas", "2"},       {"device", "nvidia0,nvidia0.1"},
        {"avoid", "amd3"},        {"vendor", "any"},       {"model", "A100"},
        {"min-free", "20GiB"},    {"min-memory", "40GB"},  {"min-cap", "8.6"},
        {"sharing", "mps"},       {"share", "0.25"},       {"memory", "8G"},
        {"scheduling", "spread"}, {"policy", "first"},     {"affinity", "warm"},
        {"priority", "low"},      {"opportunistic", NULL}, {"time", "1h30m"},
        {"name", "a name"},
    };
    struct berth_request *request = request_of(NULL);
    struct berth_error error = BERTH_ERROR_INIT;
    size_t known = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(properties); i++)
        assert_works(berth_request_set(request, properties[i].name, properties[i].value, &error),
                     &error);
    /* The reverse check: no row is missing here or in berth.h. */
    for (const struct option_set *const *set = request_property_sets; *set != NULL; set++)
        known += (*set)->count;
    assert_int_equal(known, COUNT(properties));
    berth_request_destroy(request);
}

static void properties_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *name;
        const char *value;
        int code;
        const char *message;
    } refusals[] = {
        {"gpu", "2", BERTH_ERROR_INVALID,
         "expected a property of a request, got 'gpu', did you mean gpus?"},
        {"inventory", "file", BERTH_ERROR_INVALID,
         "expected a property of a request such as gpus or model, got 'inventory'"},
        {"", "2", BERTH_ERROR_INVALID,
         "expected a property of a request such as gpus or model, got ''"},
        {"gpus", NULL, BERTH_ERROR_INVALID, "gpus: expected [MODEL:]N, got nothing"},
        {"opportunistic", "yes", BERTH_ERROR_INVALID, "opportunistic: takes no value, got 'yes'"},
        {"gpus", "2x", BERTH_ERROR_SYNTAX,
         "gpus: expected a number of devices, a range such as 2-4, or all, got '2x'"},
    };
    struct berth_request *request = request_of(NULL);

    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct berth_error error = BERTH_ERROR_INIT;

        assert_fails(berth_request_set(request, refusals[i].name, refusals[i].value, &error),
                     refusals[i].code, &error, refusals[i].message);
        assert_int_equal(berth_request_set(request, refusals[i].name, refusals[i].value, NULL),
                         refusals[i].code);
    }
    assert_int_equal(berth_request_set(request, "gpus", "0", NULL), BERTH_ERROR_RANGE);
    berth_request_destroy(request);
}

static void a_refused_value_changes_nothing(void **state)
{
    struct berth_pool *pool = pool_of(3);
    struct berth_request *request = request_of("device", "nvidia2", NULL);
    struct berth_lease lease;

    (void)state;
    assert_int_equal(berth_request_set(request, "device", "nvidia0,what", NULL),
                     BERTH_ERROR_SYNTAX);
    assert_int_equal(berth_claim(pool, request, 0, &lease, NULL), 0);
    assert_int_equal(device_of(pool, lease).slot, 2);
    berth_pool_close(pool);
    berth_request_destroy(request);
}

static void a_changed_request_is_another(void **state)
{
    struct berth_pool *pool = pool_of(4);
    struct berth_request *request = request_of(NULL);
    struct berth_lease lease;
    struct claimer claimer;

    (void)state;
    for (int gpus = 1; gpus <= 4; gpus++) {
        const char value[] = {(char)('0' + gpus), '\0'};

        assert_int_equal(berth_request_set(request, "gpus", value, NULL), 0);
        assert_int_equal(berth_claim(pool, request, 0, &lease, NULL), 0);
        assert_int_equal(berth_lease_devices(pool, lease, NULL, 0, NULL), gpus);
        if (gpus < 4)
            release(pool, lease);
    }
    /* The same holds while claims with the old values wait. */
    claimer_start(&claimer, pool, request);
    await(berth_pool_pending(pool) == 1);
    assert_int_equal(berth_request_set(request, "gpus", "5", NULL), 0);
    assert_int_equal(berth_try_claim(pool, request, &lease, NULL), BERTH_ERROR_IMPOSSIBLE);
    berth_request_destroy(request);
    release(pool, lease);
    assert_int_equal(berth_lease_devices(pool, claimer_join(&claimer), NULL, 0, NULL), 4);
    berth_pool_close(pool);
}

static void a_model_may_come_with_the_number(void **state)
{
    struct berth_device devices[] = {synth(BERTH_NVIDIA, 0), synth(BERTH_NVIDIA, 1)};
    struct berth_request *request = request_of("gpus", "A100:1", NULL);
    struct berth_pool *pool = NULL;
    struct berth_lease lease;

    (void)state;
    devices[0].name = "NVIDIA H100";
    devices[1].name = "NVIDIA A100";
    assert_int_equal(berth_pool_open_devices(devices, 2, NULL, &pool, NULL), 0);
    assert_int_equal(berth_claim(pool, request, 0, &lease, NULL), 0);
    assert_int_equal(device_of(pool, lease).slot, 1);
    assert_int_equal(berth_request_set(request, "gpus", "H100:1", NULL), 0);
    assert_int_equal(berth_claim(pool, request, 0, &lease, NULL), 0);
    assert_int_equal(device_of(pool, lease).slot, 0);
    berth_pool_close(pool);
    berth_request_destroy(request);
}

static void one_request_serves_several_pools(void **state)
{
    struct berth_pool *pools[3] = {pool_of(1), pool_of(2), pool_of(3)};
    struct berth_request *pair = request_of("gpus", "2", NULL);
    struct berth_lease lease;

    (void)state;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(berth_try_claim(pools[0], pair, &lease, NULL), BERTH_ERROR_IMPOSSIBLE);
        for (size_t i = 1; i < COUNT(pools); i++) {
            assert_int_equal(berth_try_claim(pools[i], pair, &lease, NULL), 0);
            assert_int_equal(berth_try_claim(pools[i], pair, NULL, NULL), BERTH_ERROR_BUSY);
            release(pools[i], lease);
        }
    }
    /* A full pool that could never serve the request says so, although another full pool could. */
    claim_one(pools[0]);
    assert_int_equal(berth_try_claim(pools[1], pair, &lease, NULL), 0);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(berth_try_claim(pools[1], pair, &lease, NULL), BERTH_ERROR_BUSY);
        assert_int_equal(berth_try_claim(pools[0], pair, &lease, NULL), BERTH_ERROR_IMPOSSIBLE);
    }
    berth_pool_close(pools[1]);
    assert_int_equal(berth_try_claim(pools[2], pair, &lease, NULL), 0);
    berth_request_destroy(pair);
    berth_pool_close(pools[0]);
    berth_pool_close(pools[2]);
}

static void many_requests_come_and_go(void **state)
{
    enum { REQUESTS = 200 };
    struct berth_pool *pool = pool_of(2);
    struct berth_request *kept[REQUESTS];
    struct berth_lease lease;

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < REQUESTS; i++) {
            kept[i] = request_of("gpus", i % 2 == 0 ? "1" : "2", NULL);
            assert_int_equal(berth_claim(pool, kept[i], 0, &lease, NULL), 0);
            assert_int_equal(berth_lease_devices(pool, lease, NULL, 0, NULL), 1 + i % 2);
            release(pool, lease);
        }
        for (int i = REQUESTS; i-- > 0;) {
            assert_int_equal(berth_claim(pool, kept[i], 0, &lease, NULL), 0);
            assert_int_equal(berth_lease_devices(pool, lease, NULL, 0, NULL), 1 + i % 2);
            release(pool, lease);
            berth_request_destroy(kept[i]);
        }
    }
    berth_pool_close(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_property_of_the_command_line_is_there),
        cmocka_unit_test(properties_that_are_none_are_refused),
        cmocka_unit_test(a_refused_value_changes_nothing),
        cmocka_unit_test(a_changed_request_is_another),
        cmocka_unit_test(a_model_may_come_with_the_number),
        cmocka_unit_test(one_request_serves_several_pools),
        cmocka_unit_test(many_requests_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
