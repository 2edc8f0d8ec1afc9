/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening pools: devices, inventories, options.
 */
#include "support/unit.h"

#include <berth/berth.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "model/machine/vendor.h"
#include "support/assert_error.h"
#include "support/programs/pools.h"
#include "support/temporary_directory.h"

static void devices_are_what_they_were_given_as(void **state)
{
    struct berth_device given = {
        .vendor = BERTH_NVIDIA,
        .index = 3,
        .mig = 1,
        .name = "NVIDIA A100 MIG 1g.10gb",
        .uuid = "MIG-1",
        .memory = INT64_C(10) << 30,
        .cap_major = 8,
    };
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_device found = {0};
    struct berth_pool *pool = NULL;
    char name[] = "NVIDIA A100 MIG 1g.10gb";

    (void)state;
    given.name = name;
    assert_works(berth_pool_open_devices(&given, 1, NULL, &pool, &error), &error);
    name[0] = 'X'; /* everything was copied */
    assert_works(berth_pool_device(pool, 0, &found, &error), &error);
    assert_int_equal(found.vendor, BERTH_NVIDIA);
    assert_int_equal(found.index, 3);
    assert_int_equal(found.mig, 1);
    assert_string_equal(found.name, "NVIDIA A100 MIG 1g.10gb");
    assert_string_equal(found.uuid, "MIG-1");
    assert_true(found.memory == INT64_C(10) << 30);
    assert_int_equal(found.cap_major, 8);
    assert_int_equal(found.cap_minor, 0);
    berth_pool_close(pool);
}

static void a_partitioned_gpu_is_not_leased_itself(void **state)
{
    struct berth_device devices[] = {synth(BERTH_NVIDIA, 0), synth(BERTH_NVIDIA, 0),
                                     synth(BERTH_NVIDIA, 0)};
    struct berth_pool *pool = NULL;
    struct berth_lease lease;

    (void)state;
    devices[0].mig = 0;
    devices[2].mig = 1;
    assert_int_equal(berth_pool_open_devices(devices, 3, NULL, &pool, NULL), 0);
    assert_int_equal(berth_pool_capacity(pool), 3);
    assert_int_equal(device_of(pool, claim_one(pool)).slot, 0);
    assert_int_equal(device_of(pool, claim_one(pool)).slot, 2);
    assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), BERTH_ERROR_BUSY);
    berth_pool_close(pool);
}

static void devices_that_cannot_be_are_refused(void **state)
{
    struct berth_device good = synth(BERTH_NVIDIA, 0);
    struct berth_device bad[6];
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_pool *pool = NULL;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        bad[i] = synth(BERTH_NVIDIA, 1);
    bad[0].vendor = (enum berth_vendor)5;
    bad[1].index = 1000000;
    bad[2].memory = -1;
    bad[3] = good;
    bad[4].mig = 1000000;
    bad[5].vendor = BERTH_AMD;
    bad[5].mig = 1;
    for (size_t i = 0; i < COUNT(bad); i++) {
        const struct berth_device devices[] = {good, bad[i]};

        assert_int_equal(berth_pool_open_devices(devices, 2, NULL, &pool, &error),
                         BERTH_ERROR_INVALID);
        assert_int_equal(strncmp(error.message, "device 1: ", 10), 0);
    }
    assert_null(pool);
    assert_fails(
        berth_pool_open_devices((struct berth_device[]){good, good}, 2, NULL, &pool, &error),
        BERTH_ERROR_INVALID, &error, "device 1: nvidia0 is listed twice");
}

static void an_inventory_gives_its_devices(void **state)
{
    static const char text[] = "devices:\n"
                               "  - {vendor: nvidia, index: 2, name: NVIDIA L4, memory: 24 GiB}\n"
                               "  - {vendor: amd, index: 0}\n";
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_pool *pool = NULL;
    struct berth_device device;
    FILE *file = fopen("machine.yaml", "w");

    (void)state;
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_works(berth_pool_open_inventory("machine.yaml", NULL, &pool, &error), &error);
    assert_int_equal(berth_pool_capacity(pool), 2);
    assert_works(berth_pool_device(pool, 0, &device, &error), &error);
    assert_string_equal(device.name, "NVIDIA L4");
    assert_int_equal(device.index, 2);
    assert_true(device.memory == INT64_C(24) << 30);
    assert_works(berth_pool_device(pool, 1, &device, &error), &error);
    assert_int_equal(device.vendor, BERTH_AMD);
    assert_true(device.memory == BERTH_UNKNOWN);
    assert_int_equal(device.cap_major, 0);
    berth_pool_close(pool);
    assert_int_equal(berth_pool_open_inventory("missing.yaml", NULL, &pool, &error),
                     BERTH_ERROR_NOT_FOUND);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    const struct berth_device device = synth(BERTH_NVIDIA, 0);
    const struct berth_pool_options options[] = {
        {.size = 0},
        {.size = sizeof(options[0]), .policy = "magic"},
        {.size = sizeof(options[0]), .grace = -1},
        {.size = sizeof(options[0]), .sample_interval = -1},
    };
    struct berth_pool *pool = NULL;

    (void)state;
    for (size_t i = 0; i < COUNT(options); i++) {
        struct berth_error error = BERTH_ERROR_INIT;

        assert_int_equal(berth_pool_open_devices(&device, 1, &options[i], &pool, &error),
                         BERTH_ERROR_INVALID);
        assert_true(strlen(error.message) > 0);
    }
    assert_null(pool);
}

static void the_version_is_the_headers(void **state)
{
    char wanted[32];

    (void)state;
    snprintf(wanted, sizeof(wanted), "%d.%d.%d", BERTH_VERSION_MAJOR, BERTH_VERSION_MINOR,
             BERTH_VERSION_PATCH);
    assert_string_equal(berth_version(), wanted);
}

static void vendors_have_the_same_numbers_inside(void **state)
{
    static const struct {
        enum berth_vendor outside;
        enum vendor inside;
    } vendors[] = {
        {BERTH_NVIDIA, VENDOR_NVIDIA}, {BERTH_AMD, VENDOR_AMD}, {BERTH_INTEL, VENDOR_INTEL},
        {BERTH_APPLE, VENDOR_APPLE},   {BERTH_DRI, VENDOR_DRI},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(vendors); i++)
        assert_int_equal((int)vendors[i].outside, (int)vendors[i].inside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_what_they_were_given_as),
        cmocka_unit_test(a_partitioned_gpu_is_not_leased_itself),
        cmocka_unit_test(devices_that_cannot_be_are_refused),
        cmocka_unit_test_setup_teardown(an_inventory_gives_its_devices, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(the_version_is_the_headers),
        cmocka_unit_test(vendors_have_the_same_numbers_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
