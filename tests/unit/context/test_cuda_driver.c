/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting CUDA's driver and finding devices in it.
 */
#include "support/unit.h"

#include "context/cuda.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/hardware/cuda_driver.h"

/* Checks that starting fails with this code. The message follows the library's name. */
static void assert_closed(const struct cuda_world *world, int code, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct driver *driver = NULL;
    char whole[1024];

    snprintf(whole, sizeof(whole), "%s: %s", world->library, message);
    assert_fails(cuda_driver.open(world->library, &driver, &error), code, &error, whole);
    assert_null(driver);
}

static void assert_not_loaded(const struct cuda_world *world, const char *function)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct driver *driver = NULL;
    char whole[1024];

    snprintf(whole, sizeof(whole), "cannot load %s: it has no function %s", world->library,
             function);
    assert_fails(cuda_driver.open(world->library, &driver, &error), BERTH_ERROR_INVALID, &error,
                 whole);
    assert_null(driver);
}

static void the_table_says_what_it_is(void **state)
{
    (void)state;
    assert_int_equal(cuda_driver.api, BERTH_API_CUDA);
    assert_string_equal(cuda_driver.name, "CUDA");
    assert_string_equal(cuda_driver.variable, "BERTH_CUDA");
    assert_string_equal(cuda_driver.library, "libcuda.so.1");
    assert_null(cuda_driver.stand_in);
}

static void without_a_library_there_is_no_driver(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct driver *driver = NULL;

    (void)state;
    assert_fails(cuda_driver.open("./none.so", &driver, &error), BERTH_ERROR_NOT_FOUND, &error,
                 "cannot load ./none.so: no such library");
    cuda_world_says("gpu\n"); /* a file that is not a library */
    assert_int_equal(cuda_driver.open("./cuda", &driver, &error), BERTH_ERROR_INVALID);
    assert_null(driver);
}

/* All required functions, and both versions of those that need one of two. */
static void a_library_that_lacks_a_function_is_none(void **state)
{
    static const struct {
        const char *functions;
        const char *named;
    } cases[] = {
        {"cuInit", "cuInit"},
        {"cuDeviceGetCount", "cuDeviceGetCount"},
        {"cuDeviceGet", "cuDeviceGet"},
        {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain"},
        {"cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease"},
        {"cuDevicePrimaryCtxReset_v2 cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset"},
        {"cuDevicePrimaryCtxSetFlags_v2 cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxSetFlags"},
        {"cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxGetState"},
        {"cuCtxGetCurrent", "cuCtxGetCurrent"},
        {"cuCtxSetCurrent", "cuCtxSetCurrent"},
        {"cuCtxPushCurrent_v2", "cuCtxPushCurrent_v2"},
        {"cuCtxPopCurrent_v2", "cuCtxPopCurrent_v2"},
        {"cuMemGetInfo_v2", "cuMemGetInfo_v2"},
        {"cuStreamQuery", "cuStreamQuery"},
    };
    struct cuda_world *world = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cuda_world_load(world);
        cuda_world_lacks(world, cases[i].functions);
        assert_not_loaded(world, cases[i].named);
        assert_int_equal(world->cuda.calls("cuInit"), 0);
    }
}

static void a_library_may_lack_the_rest(void **state)
{
    static const char *const cases[] = {
        "cuDeviceGetUuid",
        "cuDeviceGetUuid_v2",
        "cuDeviceGetPCIBusId",
        "cuDevicePrimaryCtxRelease_v2",
        "cuDevicePrimaryCtxRelease",
        "cuDevicePrimaryCtxReset_v2",
        "cuDevicePrimaryCtxReset",
        "cuDevicePrimaryCtxSetFlags_v2",
        "cuDevicePrimaryCtxSetFlags",
        "cuGetErrorName",
    };
    struct cuda_world *world = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct native_context context;
        struct driver *driver;

        cuda_world_load(world);
        cuda_world_lacks(world, cases[i]);
        driver = cuda_driver_start(world);
        assert_int_equal(cuda_driver.create(driver, cuda_driver_device(driver, 0), 4, &context), 0);
        assert_int_equal(cuda_driver.rebuild(driver, &context, 4), 0);
        assert_int_equal(cuda_driver.destroy(driver, context), 0);
        assert_string_equal(cuda_driver.name_status(driver, 700), "CUDA_ERROR_ILLEGAL_ADDRESS");
        free(driver);
    }
}

static void a_driver_that_does_not_start_says_why(void **state)
{
    static const struct {
        int status;
        int code;
        const char *message;
    } cases[] = {
        {100, BERTH_ERROR_NO_DEVICE, "no device (CUDA 100)"},
        {34, BERTH_ERROR_NOT_FOUND, "expected NVIDIA's driver, got a stub for linking (CUDA 34)"},
        {803, BERTH_ERROR_DRIVER,
         "does not match the running driver (CUDA 803): the driver was updated, reboot to load "
         "the new one"},
        {804, BERTH_ERROR_DRIVER,
         "CUDA's forward compatibility does not support these GPUs (CUDA 804)"},
        {802, BERTH_ERROR_BUSY, "cannot start: CUDA_ERROR_SYSTEM_NOT_READY (CUDA 802)"},
        {807, BERTH_ERROR_BUSY, "cannot start: CUDA_ERROR_MPS_SERVER_NOT_READY (CUDA 807)"},
        {2, BERTH_ERROR_BUSY, "cannot start: CUDA_ERROR_OUT_OF_MEMORY (CUDA 2)"},
        {3, BERTH_ERROR_DRIVER, "cannot start: CUDA_ERROR_NOT_INITIALIZED (CUDA 3)"},
        {999, BERTH_ERROR_DRIVER, "cannot start: CUDA_ERROR_UNKNOWN (CUDA 999)"},
        {4711, BERTH_ERROR_DRIVER, "cannot start: unknown error (CUDA 4711)"},
        {-5, BERTH_ERROR_DRIVER, "cannot start: unknown error (CUDA -5)"},
    };
    struct cuda_world *world = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        world->cuda.refuse("cuInit", CUDA_DOUBLE_ANY, cases[i].status, 1);
        assert_closed(world, cases[i].code, cases[i].message);
    }
    /* A failure is not remembered: now the driver starts. */
    free(cuda_driver_start(world));
}

static void the_mask_that_hides_all_is_named(void **state)
{
    setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    assert_closed(*state, BERTH_ERROR_NO_DEVICE, "no device (CUDA 100): CUDA_VISIBLE_DEVICES='-1'");
}

static int open_once(void *context)
{
    const struct cuda_world *world = context;
    struct berth_error error = BERTH_ERROR_INIT;
    struct driver *driver = NULL;
    int code = cuda_driver.open(world->library, &driver, &error);

    free(driver);
    return code;
}

static void without_memory_it_fails_cleanly(void **state)
{
    assert_true(failing_allocator_try_all(open_once, *state) > 0);
}

/* ---- Finding devices ---- */

/* Returns CUDA's number for the target; -1 with the message in *error if it is not found. */
static int find(struct driver *driver, struct context_target target, int code,
                struct berth_error *error)
{
    struct native_device device = {.number = -1};

    assert_int_equal(cuda_driver.find(driver, &target, &device, error), code);
    if (code == 0)
        assert_null(device.pointer);
    return device.number;
}

static void devices_are_found_by_what_they_are(void **state)
{
    struct cuda_world *world = *state;
    struct driver *driver = cuda_driver_start(world);
    struct berth_error error = BERTH_ERROR_INIT;

    /* CUDA numbers the faster device first. */
    assert_int_equal(find(driver, cuda_target("nvidia0", CUDA_WORLD_UUID_0, NULL), 0, &error), 1);
    assert_int_equal(find(driver, cuda_target("nvidia1", CUDA_WORLD_UUID_1, NULL), 0, &error), 0);
    assert_int_equal(find(driver, cuda_target("nvidia0", NULL, "0000:07:00.0"), 0, &error), 1);
    assert_int_equal(find(driver, cuda_target("nvidia1", NULL, "0000:47:00.0"), 0, &error), 0);
    /* With a UUID in capitals, and with an invalid UUID. */
    assert_int_equal(find(driver,
                          cuda_target("nvidia0", "GPU-00000000-1111-2222-3333-444444444440", NULL),
                          0, &error),
                     1);
    assert_int_equal(find(driver, cuda_target("nvidia0", "GPU-0", "0000:07:00.0"), 0, &error), 1);
    /* The UUID decides. */
    assert_int_equal(
        find(driver, cuda_target("nvidia0", CUDA_WORLD_UUID_0, "0000:47:00.0"), 0, &error), 1);
    free(driver);
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    world->cuda.restart(false);
    driver = cuda_driver_start(world);
    assert_int_equal(find(driver, cuda_target("nvidia0", CUDA_WORLD_UUID_0, NULL), 0, &error), 0);
    free(driver);
}

static void letters_of_a_uuid_may_be_large(void **state)
{
    struct cuda_world *world = *state;
    struct berth_error error = BERTH_ERROR_INIT;
    struct driver *driver;

    cuda_world_says("gpu\n uuid GPU-abcdef01-2345-6789-abcd-ef0123456789\n");
    driver = cuda_driver_start(world);
    assert_int_equal(find(driver,
                          cuda_target("nvidia0", "GPU-ABCDEF01-2345-6789-abcd-EF0123456789", NULL),
                          0, &error),
                     0);
    free(driver);
}

static void what_nothing_is_known_of_is_not_guessed(void **state)
{
    struct driver *driver = cuda_driver_start(*state);
    struct berth_error error = BERTH_ERROR_INIT;
    static const struct {
        const char *id;
        const char *uuid;
        const char *pci;
        const char *message;
    } cases[] = {
        {"nvidia0", NULL, NULL,
         "CUDA: cannot find the device: expected a UUID (GPU-...) or a PCI address, got none"},
        {"nvidia0", "GPU-0000", NULL,
         "CUDA: cannot find the device: expected a UUID (GPU-...) or a PCI address, got "
         "'GPU-0000'"},
        {"nvidia0", "GPU-00000000-1111-2222-3333-44444444444g", NULL,
         "CUDA: cannot find the device: expected a UUID (GPU-...) or a PCI address, got "
         "'GPU-00000000-1111-2222-3333-44444444444g'"},
        {"nvidia0", "GPU-00000000-1111-2222-3333-4444444444440", NULL,
         "CUDA: cannot find the device: expected a UUID (GPU-...) or a PCI address, got "
         "'GPU-00000000-1111-2222-3333-4444444444440'"},
        {"nvidia0.1", NULL, "0000:07:00.0",
         "CUDA: cannot find the device: expected a partition's UUID (MIG-...), got none"},
        {"nvidia0.1", CUDA_WORLD_UUID_0, "0000:07:00.0",
         "CUDA: cannot find the device: expected a partition's UUID (MIG-...), got "
         "'" CUDA_WORLD_UUID_0 "'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        find(driver, cuda_target(cases[i].id, cases[i].uuid, cases[i].pci), BERTH_ERROR_NOT_FOUND,
             &error);
        assert_string_equal(error.message, cases[i].message);
    }
    free(driver);
}

static void what_cuda_does_not_show_is_not_found(void **state)
{
    struct cuda_world *world = *state;
    struct driver *driver;
    struct berth_error error = BERTH_ERROR_INIT;

    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    driver = cuda_driver_start(world);
    find(driver, cuda_target("nvidia0", CUDA_WORLD_UUID_0, "0000:07:00.0"), BERTH_ERROR_NOT_FOUND,
         &error);
    assert_string_equal(error.message, "CUDA: cannot find '" CUDA_WORLD_UUID_0 "' among 1 device: "
                                       "CUDA_VISIBLE_DEVICES='0' may hide it");
    unsetenv("CUDA_VISIBLE_DEVICES");
    find(driver, cuda_target("nvidia0", NULL, "0000:07:00.0"), BERTH_ERROR_NOT_FOUND, &error);
    assert_string_equal(
        error.message,
        "CUDA: cannot find '0000:07:00.0' among 1 device: CUDA_VISIBLE_DEVICES may hide it");
    free(driver);
}

/* If another card is in the same slot, the PCI address must not decide. */
static void another_card_in_the_same_slot_is_not_it(void **state)
{
    struct driver *driver = cuda_driver_start(*state);
    struct berth_error error = BERTH_ERROR_INIT;

    find(driver, cuda_target("nvidia0", "GPU-99999999-1111-2222-3333-444444444440", "0000:07:00.0"),
         BERTH_ERROR_NOT_FOUND, &error);
    free(driver);
}

static void one_of_several_is_not_guessed(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct driver *driver;

    cuda_world_says("gpu\n pci 0:1:0.0\ngpu\n pci 0:1:0.0\n");
    driver = cuda_driver_start(*state);
    find(driver, cuda_target("nvidia0", NULL, "0000:01:00.0"), BERTH_ERROR_NOT_FOUND, &error);
    assert_string_equal(error.message, "CUDA: expected one device '0000:01:00.0', got 2");
    free(driver);
}

#define INSTANCE_1 "MIG-10000000-0000-0000-0000-000000000000"
#define INSTANCE_2 "MIG-20000000-0000-0000-0000-000000000000"
#define INSTANCES                           \
    "many-instances\n"                      \
    "gpu\n"                                 \
    "  uuid " CUDA_WORLD_UUID_0 "\n"        \
    "  pci 0000:07:00.0\n"                  \
    "instance 1 0\n  uuid " INSTANCE_1 "\n" \
    "instance 2 0\n  uuid " INSTANCE_2 "\n"

static void partitions_are_found_by_their_uuid_only(void **state)
{
    struct cuda_world *world = *state;
    struct berth_error error = BERTH_ERROR_INIT;
    struct driver *driver;

    cuda_world_says(INSTANCES);
    driver = cuda_driver_start(world);
    assert_int_equal(find(driver, cuda_target("nvidia0.1", INSTANCE_1, "0:7:0.0"), 0, &error), 0);
    assert_int_equal(find(driver, cuda_target("nvidia0.2", INSTANCE_2, "0:7:0.0"), 0, &error), 1);
    find(driver, cuda_target("nvidia0.3", "MIG-30000000-0000-0000-0000-000000000000", "0:7:0.0"),
         BERTH_ERROR_NOT_FOUND, &error);
    world->cuda.refuse("cuDeviceGetUuid_v2", CUDA_DOUBLE_ANY, 801, CUDA_DOUBLE_ALWAYS);
    find(driver, cuda_target("nvidia0.2", INSTANCE_2, "0:7:0.0"), BERTH_ERROR_DRIVER, &error);
    free(driver);
    /* With drivers that only report the GPU's UUID, instances are not found. */
    cuda_world_lacks(world, CUDA_WORLD_BEFORE_11_4);
    driver = cuda_driver_start(world);
    find(driver, cuda_target("nvidia0.1", INSTANCE_1, "0:7:0.0"), BERTH_ERROR_NOT_FOUND, &error);
    assert_int_equal(world->cuda.calls("cuDeviceGetUuid"), 0);
    free(driver);
}

static void older_drivers_tell_less(void **state)
{
    struct cuda_world *world = *state;
    struct berth_error error = BERTH_ERROR_INIT;
    struct driver *driver;

    cuda_world_lacks(world, CUDA_WORLD_BEFORE_11_4);
    driver = cuda_driver_start(world);
    assert_int_equal(find(driver, cuda_target("nvidia0", CUDA_WORLD_UUID_0, NULL), 0, &error), 1);
    free(driver);
    cuda_world_load(world);
    cuda_world_lacks(world, CUDA_WORLD_BEFORE_9_2);
    driver = cuda_driver_start(world);
    assert_int_equal(find(driver, cuda_target("nvidia0", CUDA_WORLD_UUID_0, "0:7:0.0"), 0, &error),
                     1);
    find(driver, cuda_target("nvidia0", CUDA_WORLD_UUID_0, NULL), BERTH_ERROR_NOT_FOUND, &error);
    free(driver);
}

/* A device that cannot be identified does not keep another from being found. */
static void calls_that_fail_are_told_only_where_they_matter(void **state)
{
    static const char *const calls[] = {"cuDeviceGet", "cuDeviceGetUuid_v2"};
    struct cuda_world *world = *state;
    struct driver *driver = cuda_driver_start(world);
    struct context_target target = cuda_target("nvidia0", CUDA_WORLD_UUID_0, NULL);
    struct context_target absent =
        cuda_target("nvidia2", "GPU-99999999-1111-2222-3333-444444444440", NULL);
    struct berth_error error = BERTH_ERROR_INIT;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        world->cuda.refuse(calls[i], 1, 719, CUDA_DOUBLE_ALWAYS);
        assert_int_equal(find(driver, target, 0, &error), 1);
        find(driver, absent, BERTH_ERROR_DRIVER, &error);
        assert_string_equal(error.message,
                            "CUDA: cannot find 'GPU-99999999-1111-2222-3333-444444444440': a "
                            "device cannot be identified: CUDA_ERROR_LAUNCH_FAILED (CUDA 719)");
        world->cuda.refuse(calls[i], 1, 719, 0);
    }
    world->cuda.refuse("cuDeviceGetPCIBusId", CUDA_DOUBLE_ANY, 719, CUDA_DOUBLE_ALWAYS);
    assert_int_equal(find(driver, target, 0, &error), 1);
    find(driver, absent, BERTH_ERROR_NOT_FOUND, &error);
    world->cuda.refuse("cuDeviceGetPCIBusId", CUDA_DOUBLE_ANY, 719, 0);
    world->cuda.refuse("cuDeviceGet", 1, 2, 1);
    find(driver, absent, BERTH_ERROR_BUSY, &error);
    world->cuda.refuse("cuDeviceGetCount", CUDA_DOUBLE_ANY, 999, 1);
    find(driver, target, BERTH_ERROR_DRIVER, &error);
    assert_string_equal(error.message,
                        "CUDA: cannot count the devices: CUDA_ERROR_UNKNOWN (CUDA 999)");
    /* The PCI address decides if the UUID is not reported. */
    world->cuda.refuse("cuDeviceGetUuid_v2", CUDA_DOUBLE_ANY, 801, CUDA_DOUBLE_ALWAYS);
    assert_int_equal(find(driver, cuda_target("nvidia0", CUDA_WORLD_UUID_0, "0:7:0.0"), 0, &error),
                     1);
    free(driver);
}

static void answers_that_cannot_be_are_not_believed(void **state)
{
    static const int64_t counts[] = {-1, INT32_MIN, CUDA_DEVICES_MAX + 1, INT32_MAX};
    static const int64_t numbers[] = {-1, INT32_MIN, CUDA_DEVICES_MAX, INT32_MAX};
    struct cuda_world *world = *state;
    struct driver *driver = cuda_driver_start(world);
    struct context_target target = cuda_target("nvidia0", CUDA_WORLD_UUID_0, "0:7:0.0");
    struct berth_error error = BERTH_ERROR_INIT;
    char message[256];

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        world->cuda.lie("cuDeviceGetCount", CUDA_DOUBLE_ANY, counts[i], 1);
        find(driver, target, BERTH_ERROR_DRIVER, &error);
        snprintf(message, sizeof(message), "CUDA: expected at most 256 devices, got %d",
                 (int)counts[i]);
        assert_string_equal(error.message, message);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        world->cuda.lie("cuDeviceGet", 0, numbers[i], 1);
        find(driver, target, BERTH_ERROR_DRIVER, &error);
        snprintf(message, sizeof(message),
                 "CUDA: expected a device number below 256 for its device 1, got %d",
                 (int)numbers[i]);
        assert_string_equal(error.message, message);
    }
    /* The count is too high: calls for the missing devices fail, but the right one is found. */
    world->cuda.lie("cuDeviceGetCount", CUDA_DOUBLE_ANY, CUDA_DEVICES_MAX, 1);
    assert_int_equal(find(driver, target, 0, &error), 1);
    /* A UUID of zeros is unknown; a text without an end is not an address. */
    world->cuda.lie("cuDeviceGetUuid_v2", CUDA_DOUBLE_ANY, 0, CUDA_DOUBLE_ALWAYS);
    assert_int_equal(find(driver, target, 0, &error), 1);
    world->cuda.lie("cuDeviceGetPCIBusId", CUDA_DOUBLE_ANY, 0, CUDA_DOUBLE_ALWAYS);
    find(driver, target, BERTH_ERROR_NOT_FOUND, &error);
    free(driver);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, cuda_world_enter, cuda_world_leave)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_says_what_it_is),
        TEST(without_a_library_there_is_no_driver),
        TEST(a_library_that_lacks_a_function_is_none),
        TEST(a_library_may_lack_the_rest),
        TEST(a_driver_that_does_not_start_says_why),
        TEST(the_mask_that_hides_all_is_named),
        TEST(without_memory_it_fails_cleanly),
        TEST(devices_are_found_by_what_they_are),
        TEST(letters_of_a_uuid_may_be_large),
        TEST(what_nothing_is_known_of_is_not_guessed),
        TEST(what_cuda_does_not_show_is_not_found),
        TEST(another_card_in_the_same_slot_is_not_it),
        TEST(one_of_several_is_not_guessed),
        TEST(partitions_are_found_by_their_uuid_only),
        TEST(older_drivers_tell_less),
        TEST(calls_that_fail_are_told_only_where_they_matter),
        TEST(answers_that_cannot_be_are_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
