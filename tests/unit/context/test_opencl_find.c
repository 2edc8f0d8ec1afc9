/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding OpenCL's device: by UUID, by each vendor's form of the address, in several platforms, and
 * with impossible answers.
 */
#include "support/hardware/opencl_world.h"

#include "support/failing_allocator.h"

#define UUID      "GPU-00112233-4455-6677-8899-aabbccddeeff"
#define UUID_SAID "uuid 00112233445566778899aabbccddeeff\n"

static struct context_target target_at(enum vendor vendor, const char *uuid, const char *pci)
{
    struct context_target target = {.id = {.vendor = vendor, .mig = DEVICE_NO_MIG}, .uuid = uuid};

    if (pci != NULL)
        assert_int_equal(pci_parse(pci, &target.pci, NULL), 0);
    return target;
}

static struct context_target partition(const char *uuid, const char *pci)
{
    struct context_target target = target_at(VENDOR_NVIDIA, uuid, pci);

    target.id.mig = 3;
    target.is_partition = true;
    return target;
}

/* Checks that the target is the double's device with this name. */
static void assert_found(struct opencl_world *world, struct context_target target, const char *name)
{
    struct native_device device = {0};
    struct native_context context = {0};
    char line[32];
    unsigned before;

    snprintf(line, sizeof(line), "context %s", name);
    before = world_logged(line);
    assert_int_equal(opencl_driver.find(world->driver, &target, &device, &world->error), 0);
    assert_int_equal(device.number, -1);
    assert_int_equal(opencl_driver.create(world->driver, device, 0, &context), 0);
    assert_int_equal(world_logged(line), before + 1);
    assert_int_equal(opencl_driver.destroy(world->driver, context), 0);
}

static void assert_absent(struct opencl_world *world, struct context_target target,
                          const char *message)
{
    struct native_device device = {.number = 7};

    assert_fails(opencl_driver.find(world->driver, &target, &device, &world->error),
                 BERTH_ERROR_NOT_FOUND, &world->error, message);
    assert_int_equal(device.number, 7);
}

static void by_place(void **state)
{
    static const struct {
        const char *says;
        const char *pci;
        enum vendor vendor;
    } ways[] = {
        {WORLD_INTEL "device gpu\nkhronos 0 6 0 0\ndevice gpu\nkhronos 65539 7 31 7\n",
         "10003:07:1f.7", VENDOR_INTEL},
        {WORLD_NVIDIA "device gpu\nnvidia 6 0 0\ndevice gpu\nnvidia 7 43 2\n", "0002:07:05.3",
         VENDOR_NVIDIA},
        {WORLD_NVIDIA "device gpu\nnvidia 6 0\ndevice gpu\nnvidia 7 43\n", "0000:07:05.3",
         VENDOR_NVIDIA},
        {WORLD_AMD "device gpu\namd 195 0 0\ndevice gpu\namd 227 0 1\n", "0000:e3:00.1",
         VENDOR_AMD},
        /* Khronos' form has all parts, so it comes first. */
        {WORLD_AMD "device gpu\namd 7 0 0\nkhronos 0 6 0 0\ndevice accelerator\namd 6 0 0\n"
                   "khronos 1 7 0 0\n",
         "0001:07:00.0", VENDOR_AMD},
    };

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct opencl_world *world = *state;

        world_start(world, ways[i].says);
        assert_found(world, target_at(ways[i].vendor, NULL, ways[i].pci), "0.1");
    }
}

static void by_uuid(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, WORLD_NVIDIA "device gpu\nnvidia 7 0 0\nuuid "
                                    "ffffffffffffffffffffffffffffffff\n"
                                    "device gpu\nnvidia 8 0 0\n" UUID_SAID);
    assert_found(world, target_at(VENDOR_NVIDIA, UUID, NULL), "0.1");
    assert_found(world, target_at(VENDOR_NVIDIA, "GPU-00112233-4455-6677-8899-AABBCCDDEEFF", NULL),
                 "0.1");
    /* The UUID takes precedence over the address. */
    assert_found(world, target_at(VENDOR_NVIDIA, UUID, "0000:07:00.0"), "0.1");
    assert_absent(
        world, target_at(VENDOR_NVIDIA, "GPU-10112233-4455-6677-8899-aabbccddeeff", "0000:07:00.0"),
        "OpenCL: cannot find GPU-10112233-4455-6677-8899-aabbccddeeff, 0000:07:00.0 among 2 other "
        "devices, 0 without UUID and PCI address");
    /* A UUID in another format, such as AMD's, is ignored here. */
    assert_found(world, target_at(VENDOR_NVIDIA, "GPU-f00dbabe12345678", "0000:08:00.0"), "0.1");
}

static void a_device_without_uuid_is_found_by_place(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, WORLD_NVIDIA "device gpu\nnvidia 7 0 0\n");
    assert_found(world, target_at(VENDOR_NVIDIA, UUID, "0000:07:00.0"), "0.0");
    /* A UUID of zeros is unknown. */
    world_says(WORLD_NVIDIA "device gpu\nnvidia 7 0 0\nuuid 00000000000000000000000000000000\n");
    assert_found(world, target_at(VENDOR_NVIDIA, UUID, "0000:07:00.0"), "0.0");
}

static void partitions_only_by_uuid(void **state)
{
    struct opencl_world *world = *state;

    world_start(world,
                WORLD_NVIDIA "device gpu\nnvidia 7 0 0\ndevice gpu\nnvidia 7 0 0\n" UUID_SAID);
    assert_found(world, partition("MIG-00112233-4455-6677-8899-aabbccddeeff", "0000:07:00.0"),
                 "0.1");
    assert_absent(world, partition(NULL, "0000:07:00.0"),
                  "OpenCL: cannot find the device: expected a partition's UUID, got none");
    assert_absent(world, partition("MIG-GPU-00112233-4455-6677-8899-aabbccddeeff/1/0", NULL),
                  "OpenCL: cannot find the device: expected a partition's UUID, got "
                  "MIG-GPU-00112233-4455-6677-8899-aabbccddeeff/1/0");
    assert_absent(world, partition("MIG-10112233-4455-6677-8899-aabbccddeeff", "0000:07:00.0"),
                  "OpenCL: cannot find MIG-10112233-4455-6677-8899-aabbccddeeff, 0000:07:00.0 "
                  "among 2 other devices, 0 without UUID and PCI address");
}

static void what_nothing_is_known_of(void **state)
{
    static const char *const wrong[] = {
        "",
        "GPU-",
        "00112233-4455-6677-8899-aabbccddeeff",
        "GPU-00112233-4455-6677-8899-aabbccddeefg",
        "GPU-00112233-4455-6677-8899-aabbccddeef",
        "GPU-00112233-4455-6677-8899-aabbccddeefff",
        "GPU-001122334-455-6677-8899-aabbccddeeff",
        "GPU-00112233-4455-6677-8899-aabbccdd-eff",
    };
    struct opencl_world *world = *state;

    world_start(world, WORLD_NVIDIA "device gpu\n" UUID_SAID);
    assert_absent(world, target_at(VENDOR_NVIDIA, NULL, NULL),
                  "OpenCL: cannot find the device: expected a UUID or a PCI address, got none");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char message[160];

        snprintf(message, sizeof(message),
                 "OpenCL: cannot find the device: expected a UUID or a PCI address, got %s",
                 wrong[i]);
        assert_absent(world, target_at(VENDOR_NVIDIA, wrong[i], NULL), message);
    }
}

static void never_a_cpu(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, WORLD_POCL "device cpu\nkhronos 0 7 0 0\n");
    assert_absent(world, target_at(VENDOR_NVIDIA, NULL, "0000:07:00.0"),
                  "OpenCL: cannot find 0000:07:00.0: no GPU");
    /* Not even a CPU that is listed as a GPU. */
    world_says(WORLD_POCL "device cpu\nshown-as gpu\nkhronos 0 7 0 0\n");
    assert_absent(world, target_at(VENDOR_NVIDIA, NULL, "0000:07:00.0"),
                  "OpenCL: cannot find 0000:07:00.0: no GPU");
}

static void the_vendors_own_platform_wins(void **state)
{
    static const char device[] = "device gpu\nkhronos 0 7 0 0\n";
    const struct context_target nvidia = target_at(VENDOR_NVIDIA, NULL, "0000:07:00.0");
    const struct context_target amd = target_at(VENDOR_AMD, NULL, "0000:07:00.0");
    const struct context_target other = target_at(VENDOR_DRI, NULL, "0000:07:00.0");
    struct opencl_world *world = *state;
    char says[512];

    snprintf(says, sizeof(says), "%s%s%s%s%s%s", WORLD_POCL, device, WORLD_NVIDIA, device,
             WORLD_MESA, device);
    world_start(world, says);
    assert_found(world, nvidia, "1.0");
    snprintf(says, sizeof(says), "%s%s%s%s%s%s", WORLD_MESA, device, WORLD_POCL, device, WORLD_AMD,
             device);
    world_says(says);
    assert_found(world, amd, "2.0");
    /* Among other platforms the name decides, not the loader's order. */
    assert_found(world, nvidia, "2.0");
    assert_found(world, other, "2.0");
    snprintf(says, sizeof(says), "%s%s%s%s", WORLD_MESA, device, WORLD_POCL, device);
    world_says(says);
    assert_found(world, nvidia, "1.0");
    snprintf(says, sizeof(says), "%s%s%s%s", WORLD_POCL, device, WORLD_MESA, device);
    world_says(says);
    assert_found(world, nvidia, "0.0");
    /* With equal names the first one is used. */
    snprintf(says, sizeof(says), "%s%s%s%s", WORLD_NVIDIA, device, WORLD_NVIDIA, device);
    world_says(says);
    assert_found(world, nvidia, "0.0");
}

static void twice_in_one_platform(void **state)
{
    const struct context_target target = target_at(VENDOR_AMD, NULL, "0000:01:00.0");
    struct opencl_world *world = *state;

    /* A machine with a GPU in each of two domains, which the driver does not report. */
    world_start(world, WORLD_AMD "device gpu\namd 1 0 0\ndevice gpu\namd 1 0 0\n");
    assert_absent(world, target,
                  "OpenCL: expected one device 0000:01:00.0, got 2 in the platform AMD APP");
    assert_absent(
        world, target_at(VENDOR_AMD, NULL, "0001:01:00.0"),
        "OpenCL: cannot find 0001:01:00.0 among 2 other devices, 0 without UUID and PCI address");
    /* The same handle twice is one device. */
    world_says(WORLD_AMD "device gpu\namd 1 0 0\nagain\n");
    assert_found(world, target, "0.0");
}

static void what_others_there_are(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, WORLD_NVIDIA "device gpu\ndevice gpu\n" UUID_SAID WORLD_AMD
                                    "device gpu\namd 1 0 0\n");
    assert_absent(
        world, target_at(VENDOR_NVIDIA, NULL, "0000:07:00.0"),
        "OpenCL: cannot find 0000:07:00.0 among 3 other devices, 1 without UUID and PCI address");
    world_says(WORLD_AMD "device gpu\namd 1 0 0\n");
    assert_absent(world, target_at(VENDOR_NVIDIA, UUID, NULL),
                  "OpenCL: cannot find " UUID " among 1 other device, 0 without UUID and PCI "
                  "address");
}

static void platforms_that_fail(void **state)
{
    const struct context_target target = target_at(VENDOR_NVIDIA, NULL, "0000:07:00.0");
    struct opencl_world *world = *state;
    struct native_device device;

    /* A device in another platform is found. */
    world_start(world, WORLD_POCL "fails -5\n" WORLD_NVIDIA "device gpu\nkhronos 0 7 0 0\n");
    assert_found(world, target, "1.0");
    world_says(WORLD_POCL "fails -5\n" WORLD_NVIDIA);
    assert_fails(
        opencl_driver.find(world->driver, &target, &device, &world->error), BERTH_ERROR_DRIVER,
        &world->error,
        "OpenCL: cannot find 0000:07:00.0: a platform fails: CL_OUT_OF_RESOURCES (OpenCL -5)");
    world_says(WORLD_NVIDIA WORLD_POCL "fails -6\n");
    assert_fails(
        opencl_driver.find(world->driver, &target, &device, &world->error), BERTH_ERROR_BUSY,
        &world->error,
        "OpenCL: cannot find 0000:07:00.0: a platform fails: CL_OUT_OF_HOST_MEMORY (OpenCL -6)");
    world_says("call clGetPlatformIDs -1001\n");
    assert_fails(opencl_driver.find(world->driver, &target, &device, &world->error),
                 BERTH_ERROR_NO_DEVICE, &world->error,
                 "OpenCL: no platform: no OpenCL driver is installed");
    world_says("call clGetDeviceInfo -5\n" WORLD_NVIDIA "device gpu\nkhronos 0 7 0 0\n");
    assert_fails(opencl_driver.find(world->driver, &target, &device, &world->error),
                 BERTH_ERROR_NOT_FOUND, &world->error, "OpenCL: cannot find 0000:07:00.0: no GPU");
}

static void answers_that_cannot_be(void **state)
{
    static const char *const places[] = {
        "khronos 0 256 0 0\n", "khronos 0 7 32 0\n",
        "khronos 0 7 0 8\n",   "khronos 0 4294967047 0 0\n",
        "nvidia 263 0 0\n",    "nvidia 7 256 0\n",
        "amd 7 32 0\n",        "amd 7 0 8\n",
    };
    static const char *const sizes[] = {
        "khronos 0 7 0 0\nsize 0x410f 15\n", "khronos 0 7 0 0\nsize 0x410f 4000000000\n",
        "nvidia 7 0 0\nsize 0x4008 8\n",     "nvidia 7 0 0\nsize 0x4009 0\n",
        "amd 7 0 0\nsize 0x4037 23\n",       UUID_SAID "size 0x106a 15\n",
    };
    struct opencl_world *world = *state;
    char says[256];

    world_start(world, WORLD_NVIDIA);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(says, sizeof(says), "%sdevice gpu\n%s", WORLD_NVIDIA, places[i]);
        world_says(says);
        assert_absent(world, target_at(VENDOR_NVIDIA, NULL, "0000:07:00.0"),
                      "OpenCL: cannot find 0000:07:00.0 among 1 other device, 1 without UUID and "
                      "PCI address");
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(says, sizeof(says), "%sdevice gpu\n%s", WORLD_NVIDIA, sizes[i]);
        world_says(says);
        assert_absent(world, target_at(VENDOR_NVIDIA, UUID, "0000:07:00.0"),
                      "OpenCL: cannot find " UUID ", 0000:07:00.0 among 1 other device, 1 without "
                      "UUID and PCI address");
    }
    /* A type of another size could be a CPU. */
    world_says(WORLD_NVIDIA "device gpu\nkhronos 0 7 0 0\nsize 0x1000 4\n");
    assert_absent(world, target_at(VENDOR_NVIDIA, NULL, "0000:07:00.0"),
                  "OpenCL: cannot find 0000:07:00.0: no GPU");
}

static void counts_that_cannot_be(void **state)
{
    const struct context_target target = target_at(VENDOR_NVIDIA, NULL, "0000:07:00.0");
    struct opencl_world *world = *state;

    world_start(world,
                WORLD_NVIDIA "devices 4000000000\ndevice gpu\ndevice gpu\nkhronos 0 7 0 0\n");
    assert_found(world, target, "0.1");
    world_says(WORLD_NVIDIA "devices 0\ndevice gpu\nkhronos 0 7 0 0\n");
    assert_absent(world, target, "OpenCL: cannot find 0000:07:00.0: no GPU");
    world_says("platforms 4000000000\n" WORLD_NVIDIA "device gpu\nkhronos 0 7 0 0\n");
    assert_found(world, target, "0.0");
}

static void texts_of_platforms_that_cannot_be(void **state)
{
    const struct context_target target = target_at(VENDOR_NVIDIA, NULL, "0000:07:00.0");
    struct opencl_world *world = *state;

    world_start(world, WORLD_POCL "device gpu\nkhronos 0 7 0 0\n" WORLD_NVIDIA
                                  "unterminated\ndevice gpu\nkhronos 0 7 0 0\n");
    assert_found(world, target, "1.0");
    world_says("call clGetPlatformInfo -5\n" WORLD_POCL "device gpu\nkhronos 0 7 0 0\n" WORLD_NVIDIA
               "device gpu\nkhronos 0 7 0 0\n");
    assert_found(world, target, "0.0");
    /* Two equal devices in a platform whose name is too long for a message and contains an escape
     * sequence. */
    world_says("platform\nname \x1b[31m0123456789012345678901234567890123456789012345678901234567"
               "890123456789\nunterminated\ndevice gpu\nkhronos 0 7 0 0\ndevice gpu\nkhronos 0 7 0 "
               "0\n");
    assert_absent(world, target,
                  "OpenCL: expected one device 0000:07:00.0, got 2 in the platform "
                  "?[31m0123456789012345678901234567890123456789012345678901234567");
}

static int find_it(void *context)
{
    const struct context_target target = target_at(VENDOR_NVIDIA, NULL, "0000:07:00.0");
    struct opencl_world *world = context;
    struct native_device device;

    return opencl_driver.find(world->driver, &target, &device, &world->error);
}

static void finding_takes_no_memory(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, WORLD_NVIDIA "device gpu\nkhronos 0 7 0 0\n");
    assert_int_equal(failing_allocator_try_all(find_it, world), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_enter, world_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(by_place),
        TEST(by_uuid),
        TEST(a_device_without_uuid_is_found_by_place),
        TEST(partitions_only_by_uuid),
        TEST(what_nothing_is_known_of),
        TEST(never_a_cpu),
        TEST(the_vendors_own_platform_wins),
        TEST(twice_in_one_platform),
        TEST(what_others_there_are),
        TEST(platforms_that_fail),
        TEST(answers_that_cannot_be),
        TEST(counts_that_cannot_be),
        TEST(texts_of_platforms_that_cannot_be),
        TEST(finding_takes_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
