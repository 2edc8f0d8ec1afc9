/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/lease.h"

#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/machines.h"
#include "support/random.h"
#include "support/steps.h"

static void add_device(struct lease *lease, size_t slot, uint32_t share)
{
    struct lease_device *device = vector_append(&lease->devices);

    assert_non_null(device);
    device->slot = slot;
    device->share = share;
}

/* An exclusive lease of slots 3 and 1 that never ends. */
static struct lease good_lease(void)
{
    struct lease lease = {.id = 7, .priority = PRIORITY_NORMAL, .granted_at = 1000};

    add_device(&lease, 3, SHARE_WHOLE);
    add_device(&lease, 1, SHARE_WHOLE);
    return lease;
}

static void check_good(const struct lease *lease)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(lease_validate(lease, &error), 0);
    assert_string_equal(error.message, "");
    assert_int_equal(lease_validate(lease, NULL), 0);
}

static void check_bad(const struct lease *lease, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_fails(lease_validate(lease, &error), BERTH_ERROR_INVALID, &error, message);
    assert_int_equal(lease_validate(lease, NULL), BERTH_ERROR_INVALID);
}

static void finish_frees_and_zeroes(void **state)
{
    struct lease lease = good_lease();

    (void)state;
    lease.name = copy_of("train");
    lease_finish(&lease);
    assert_int_equal(lease.id, 0);
    assert_null(lease.name);
    assert_null(lease.devices.items);
    assert_int_equal(lease.devices.count, 0);
    assert_int_equal(lease.priority, PRIORITY_UNSAID);
    lease_finish(&lease);
}

static void a_good_lease_passes(void **state)
{
    struct lease lease = good_lease();

    (void)state;
    check_good(&lease);
    lease.id = UINT64_MAX;
    lease.name = copy_of("");
    lease.pid = 0;
    lease.uid = UINT32_MAX;
    lease.opportunistic = true;
    for (enum priority priority = PRIORITY_LOW; priority <= PRIORITY_HIGH; priority++) {
        lease.priority = priority;
        check_good(&lease);
    }
    lease_finish(&lease);
}

static void an_id_is_needed(void **state)
{
    struct lease lease = good_lease();

    (void)state;
    lease.id = 0;
    check_bad(&lease, "lease: wanted an id, found 0");
    lease.id = 1;
    check_good(&lease);
    lease_finish(&lease);
}

static void a_priority_is_needed(void **state)
{
    struct lease lease = good_lease();

    (void)state;
    lease.priority = PRIORITY_UNSAID;
    check_bad(&lease, "lease 7: wanted a priority, found none");
    lease_finish(&lease);
}

static void a_device_is_needed(void **state)
{
    struct lease lease = good_lease();

    (void)state;
    lease.devices.count = 1;
    check_good(&lease);
    lease.devices.count = 0;
    check_bad(&lease, "lease 7: wanted at least 1 device, found 0");
    lease_finish(&lease);
}

static void the_end_is_after_the_start(void **state)
{
    static const char message[] = "lease 7: wanted an end after its start, found one before";
    struct lease lease = good_lease();

    (void)state;
    lease.expires_at = optional_number_of(1001);
    check_good(&lease);
    lease.expires_at = optional_number_of(INT64_MAX);
    check_good(&lease);
    lease.expires_at = optional_number_of(1000);
    check_bad(&lease, message);
    lease.expires_at = optional_number_of(0);
    check_bad(&lease, message);
    /* An unknown end is none, whatever stands there. */
    lease.expires_at.known = false;
    check_good(&lease);
    lease.granted_at = -5;
    lease.expires_at = optional_number_of(0);
    check_good(&lease);
    lease_finish(&lease);
}

static void an_exclusive_lease_has_whole_devices(void **state)
{
    struct lease lease = good_lease();

    (void)state;
    lease.devices.items[1].share = SHARE_WHOLE - 1;
    check_bad(&lease, "lease 7: wanted the whole of slot 1, found 999999 of 1000000 millionths");
    lease.devices.items[1].share = SHARE_WHOLE + 1;
    check_bad(&lease, "lease 7: wanted the whole of slot 1, found 1000001 of 1000000 millionths");
    lease.devices.items[1].share = 0;
    check_bad(&lease, "lease 7: wanted the whole of slot 1, found 0 of 1000000 millionths");
    lease_finish(&lease);
}

static void shares_are_within_the_device(void **state)
{
    static const enum sharing modes[] = {SHARING_MPS, SHARING_TIME_SLICE};
    struct lease lease = good_lease();

    (void)state;
    for (size_t i = 0; i < COUNT(modes); i++) {
        lease.sharing = modes[i];
        lease.devices.items[0].share = 1;
        lease.devices.items[1].share = SHARE_WHOLE;
        check_good(&lease);
        lease.devices.items[0].share = 0;
        check_bad(&lease,
                  "lease 7: wanted a share of slot 3 from 1 to 1000000 millionths, found 0");
        lease.devices.items[0].share = SHARE_WHOLE + 1;
        check_bad(&lease,
                  "lease 7: wanted a share of slot 3 from 1 to 1000000 millionths, found 1000001");
        lease.devices.items[0].share = UINT32_MAX;
        check_bad(&lease, "lease 7: wanted a share of slot 3 from 1 to 1000000 millionths, "
                          "found 4294967295");
    }
    lease_finish(&lease);
}

static void no_device_is_leased_twice(void **state)
{
    struct lease lease = good_lease();

    (void)state;
    add_device(&lease, 3, SHARE_WHOLE);
    check_bad(&lease, "lease 7: wanted each device once, found slot 3 twice");
    lease.devices.items[2].slot = 2;
    check_good(&lease);
    lease.sharing = SHARING_TIME_SLICE;
    lease.devices.items[1].slot = 2;
    check_bad(&lease, "lease 7: wanted each device once, found slot 2 twice");
    lease_finish(&lease);
}

/* Many slots in any order are fine until one comes a second time, wherever. */
static void random_leases_are_good_until_a_slot_comes_twice(void **state)
{
    struct test_random random = {11};

    (void)state;
    for (unsigned long step = test_steps(2000); step > 0; step--) {
        struct lease lease = {.id = 1 + step, .priority = PRIORITY_LOW, .sharing = SHARING_MPS};
        size_t first = test_random_below(&random, 1000);
        size_t count = 2 + test_random_below(&random, 10);
        size_t one = test_random_below(&random, count);
        size_t other = test_random_below(&random, count);

        /* 7 and 13 have no common divisor, so that these are all different. */
        for (size_t i = 0; i < count; i++)
            add_device(&lease, (first + i * 7) % 13,
                       1 + (uint32_t)test_random_below(&random, SHARE_WHOLE));
        check_good(&lease);
        if (one != other) {
            lease.devices.items[one].slot = lease.devices.items[other].slot;
            assert_int_equal(lease_validate(&lease, NULL), BERTH_ERROR_INVALID);
        }
        lease_finish(&lease);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finish_frees_and_zeroes),
        cmocka_unit_test(a_good_lease_passes),
        cmocka_unit_test(an_id_is_needed),
        cmocka_unit_test(a_priority_is_needed),
        cmocka_unit_test(a_device_is_needed),
        cmocka_unit_test(the_end_is_after_the_start),
        cmocka_unit_test(an_exclusive_lease_has_whole_devices),
        cmocka_unit_test(shares_are_within_the_device),
        cmocka_unit_test(no_device_is_leased_twice),
        cmocka_unit_test(random_leases_are_good_until_a_slot_comes_twice),
    };

    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
