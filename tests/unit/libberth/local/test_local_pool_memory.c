/* SPDX-License-Identifier: Apache-2.0
 *
 * Out of memory: calls fail with BERTH_ERROR_MEMORY and change nothing.
 */
#include "support/unit.h"

#include <berth/berth.h>
#include <string.h>

#include "support/failing_allocator.h"
#include "support/programs/pools.h"

static int open_and_close(void *context)
{
    struct berth_device devices[] = {synth(BERTH_NVIDIA, 0), synth(BERTH_NVIDIA, 1)};
    struct berth_pool *pool = NULL;
    int code;

    (void)context;
    devices[0].name = "a name";
    devices[1].mig = 4;
    code = berth_pool_open_devices(devices, 2, NULL, &pool, NULL);
    if (code == 0)
        berth_pool_close(pool);
    else
        assert_null(pool);
    return code;
}

static int make_request(void *context)
{
    struct berth_request *request = NULL;
    int code = berth_request_create(&request, NULL);

    (void)context;
    if (code == 0)
        code = berth_request_set(request, "gpus", "A100:2", NULL);
    if (code == 0)
        code = berth_request_set(request, "device", "nvidia0,nvidia1", NULL);
    if (code == 0)
        code = berth_request_set(request, "name", "somebody", NULL);
    berth_request_destroy(request);
    return code;
}

/* Claims with a new request, so that it is compiled. */
static int claim_with_new_request(void *context)
{
    struct berth_pool *pool = context;
    struct berth_request *request = NULL;
    struct berth_lease lease;
    int code = berth_request_create(&request, NULL);

    if (code == 0)
        code = berth_request_set(request, "gpus", "2", NULL);
    if (code == 0)
        code = berth_claim(pool, request, 0, &lease, NULL);
    if (code == 0)
        code = berth_release(pool, lease, NULL);
    berth_request_destroy(request);
    return code;
}

static void note(void *data, struct berth_ticket ticket, int code, struct berth_lease lease)
{
    int *calls = data;

    (void)ticket;
    (void)code;
    (void)lease;
    (*calls)++;
}

/* Queues claims and cancels them. */
static int start_and_cancel(void *context)
{
    struct berth_pool *pool = context;
    int calls = 0;
    const struct berth_claim_options told = {.size = sizeof(told), .done = note, .data = &calls};
    const struct berth_claim_options dated = {.size = sizeof(dated), .timeout = 3600 * SECOND};
    struct berth_ticket tickets[2];
    struct berth_lease lease;
    int started = 0;
    int code = berth_claim_start(pool, NULL, &told, &tickets[0], NULL);

    if (code == 0) {
        started++;
        code = berth_claim_start(pool, NULL, &dated, &tickets[1], NULL);
        started += code == 0;
    }
    failing_allocator_stop();
    for (int i = 0; i < started; i++)
        assert_int_equal(berth_cancel(pool, tickets[i], NULL), 0);
    assert_int_equal(calls, started > 0);
    if (started == 2)
        assert_int_equal(berth_claim_wait(pool, tickets[1], 0, &lease, NULL),
                         BERTH_ERROR_CANCELLED);
    assert_int_equal(berth_pool_pending(pool), 0);
    return code;
}

static bool decline(void *data, struct berth_lease lease, const struct berth_lease_device *device)
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

static int start_arbiter(void *context)
{
    const struct berth_arbiter_options options = {
        .size = sizeof(options), .offer = decline, .take_back = ignore};
    struct berth_arbiter *arbiter = NULL;
    int code = berth_arbiter_start(context, &options, &arbiter, NULL);

    if (code == 0)
        berth_arbiter_stop(arbiter);
    return code;
}

static void opening_fails_cleanly(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(open_and_close, NULL) > 10);
}

static void requests_fail_cleanly(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(make_request, NULL) > 3);
}

static void claims_fail_cleanly(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_slot slots[2];

    (void)state;
    assert_true(failing_allocator_try_all(claim_with_new_request, pool) > 3);
    assert_int_equal(berth_snapshot_leases(pool, slots, 2), 2);
    assert_false(slots[0].leased || slots[1].leased);
    berth_pool_close(pool);
}

/* Each attempt gets a new pool, because a pool keeps the memory that it has reserved. */
static void started_claims_fail_cleanly(void **state)
{
    (void)state;
    for (unsigned long n = 1; n < 100; n++) {
        struct berth_pool *pool = pool_of(1);
        int code;

        claim_one(pool);
        failing_allocator_start(n);
        code = start_and_cancel(pool);
        berth_pool_close(pool);
        if (code == 0)
            return;
        assert_int_equal(code, BERTH_ERROR_MEMORY);
    }
    fail();
}

/* An arbiter that could not claim because of missing memory claims after the next change. */
static void arbiters_fail_cleanly(void **state)
{
    struct berth_pool *pool = pool_of(2);
    bool refused = true;

    (void)state;
    for (unsigned long n = 1; refused; n++) {
        int code;

        failing_allocator_start(n);
        code = start_arbiter(pool);
        refused = failing_allocator_stop();
        assert_true(code == 0 || (refused && code == BERTH_ERROR_MEMORY));
    }
    berth_pool_close(pool);
}

/* Calls that must not fail do not fail, even without any memory. */
static void releases_and_grants_need_no_memory(void **state)
{
    enum { CLAIMS = 20 };
    struct berth_pool *pool = pool_of(2);
    struct berth_lease leases[2] = {claim_one(pool), claim_one(pool)};
    int calls = 0;
    const struct berth_claim_options told = {.size = sizeof(told), .done = note, .data = &calls};
    struct berth_ticket tickets[CLAIMS];
    struct berth_ticket found;
    struct berth_lease lease;
    int code;

    (void)state;
    assert_int_equal(berth_claim_start(pool, NULL, &told, &tickets[0], NULL), 0);
    for (size_t i = 1; i < CLAIMS; i++)
        assert_int_equal(berth_claim_start(pool, NULL, NULL, &tickets[i], NULL), 0);
    failing_allocator_start(1);
    release(pool, leases[0]);
    release(pool, leases[1]);
    assert_int_equal(calls, 1);
    for (size_t i = 1; i < CLAIMS; i++) {
        assert_int_equal(berth_claim_next(pool, &found, &code, &lease, NULL), 0);
        assert_int_equal(code, 0);
        assert_int_equal(found.id, tickets[i].id);
        release(pool, lease);
    }
    assert_false(failing_allocator_stop());
    berth_pool_close(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_fails_cleanly),
        cmocka_unit_test(requests_fail_cleanly),
        cmocka_unit_test(claims_fail_cleanly),
        cmocka_unit_test(started_claims_fail_cleanly),
        cmocka_unit_test(arbiters_fail_cleanly),
        cmocka_unit_test(releases_and_grants_need_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
