/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL driver with the double: failures, parts of a CPU, memory, contexts.
 */
#include "support/hardware/opencl_world.h"

#include <pthread.h>

#include "support/failing_allocator.h"

#define GPU WORLD_AMD "device gpu\nkhronos 0 7 0 0\n"
#define CPU WORLD_POCL "device cpu\n"

/* ---- Starting ---- */

static void no_driver_is_installed(void **state)
{
    struct opencl_world *world = *state;

    assert_fails(world_open(world, "call clGetPlatformIDs -1001\n"), BERTH_ERROR_NO_DEVICE,
                 &world->error, "OpenCL: no platform: no OpenCL driver is installed");
    assert_fails(world_open(world, "platforms 0\n" GPU), BERTH_ERROR_NO_DEVICE, &world->error,
                 "OpenCL: no platform: no OpenCL driver is installed");
    assert_fails(world_open(world, ""), BERTH_ERROR_NO_DEVICE, &world->error,
                 "OpenCL: no platform: no OpenCL driver is installed");
    assert_null(world->driver);
}

static void a_driver_that_does_not_start(void **state)
{
    struct opencl_world *world = *state;

    assert_fails(world_open(world, "call clGetPlatformIDs -6\n"), BERTH_ERROR_BUSY, &world->error,
                 "OpenCL: cannot list the platforms: CL_OUT_OF_HOST_MEMORY (OpenCL -6)");
    assert_fails(world_open(world, "call clGetPlatformIDs -4711\n"), BERTH_ERROR_DRIVER,
                 &world->error, "OpenCL: cannot list the platforms: unknown error (OpenCL -4711)");
    assert_null(world->driver);
}

static void a_library_that_is_none(void **state)
{
    struct opencl_world *world = *state;

    assert_int_equal(opencl_driver.open("./none.so", &world->driver, &world->error),
                     BERTH_ERROR_NOT_FOUND);
    assert_fails(opencl_driver.open("libc.so.6", &world->driver, &world->error),
                 BERTH_ERROR_INVALID, &world->error,
                 "cannot load libc.so.6: it has no function clGetPlatformIDs");
    assert_null(world->driver);
}

static int open_it(void *context)
{
    struct opencl_world *world = context;

    opencl_destroy((struct opencl *)world->driver);
    world->driver = NULL;
    return opencl_driver.open(text_string(&world->library), &world->driver, &world->error);
}

static void opening_without_memory(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, GPU);
    assert_true(failing_allocator_try_all(open_it, world) > 0);
}

/* ---- Contexts ---- */

/* Returns the GPU at 0000:07:00.0 of a world that has one. */
static struct native_device gpu_of(struct opencl_world *world)
{
    const struct context_target target = {.id = {.vendor = VENDOR_AMD, .mig = DEVICE_NO_MIG},
                                          .pci = {.known = true, .bus = 7}};
    struct native_device device = {0};

    assert_int_equal(opencl_driver.find(world->driver, &target, &device, &world->error), 0);
    return device;
}

static struct native_context context_of(struct opencl_world *world)
{
    struct native_context context = {0};

    assert_int_equal(opencl_driver.create(world->driver, gpu_of(world), 0, &context), 0);
    return context;
}

static void a_context_is_made_tried_and_given_back(void **state)
{
    struct opencl_world *world = *state;
    struct native_context context;

    assert_int_equal(opencl_driver.api, BERTH_API_OPENCL);
    assert_null(opencl_driver.make_current);
    world_start(world, GPU);
    context = context_of(world);
    assert_int_equal(opencl_driver.try(world->driver, &context), 0);
    assert_int_equal(world_logged("queue 0.0"), 1);
    assert_int_equal(world_logged("end of queue 0.0"), 1);
    assert_int_equal(opencl_driver.destroy(world->driver, context), 0);
    assert_int_equal(world_logged("context 0.0"), 1);
    assert_int_equal(world_logged("end of context 0.0"), 1);
    /* The driver's status for a mistake is passed on. */
    assert_int_equal(opencl_driver.destroy(world->driver, context), OPENCL_INVALID_CONTEXT);
    assert_int_equal(opencl_driver.destroy(world->driver, (struct native_context){0}), 0);
}

static void a_context_that_cannot_be_made(void **state)
{
    struct opencl_world *world = *state;
    struct native_context context = {.epoch = 7};
    struct native_device device;

    world_start(world, GPU);
    device = gpu_of(world);
    world_says("call clCreateContext -5\n" GPU);
    assert_int_equal(opencl_driver.create(world->driver, device, 0, &context), -5);
    world_says("call clCreateContext 0\n" GPU);
    assert_int_equal(opencl_driver.create(world->driver, device, 0, &context),
                     OPENCL_INVALID_CONTEXT);
    world_says(GPU "size 0x1031 4\n");
    assert_int_equal(opencl_driver.create(world->driver, device, 0, &context),
                     OPENCL_INVALID_VALUE);
    world_says(WORLD_AMD);
    assert_int_equal(opencl_driver.create(world->driver, device, 0, &context),
                     OPENCL_INVALID_DEVICE);
    assert_int_equal(context.epoch, 7);
    assert_null(context.pointer);
    assert_int_equal(world_logged("context 0.0"), 0);
}

static void trying_finds_what_is_wrong(void **state)
{
    struct opencl_world *world = *state;
    struct native_context context;

    world_start(world, GPU);
    context = context_of(world);
    world_says("call clCreateCommandQueue -36\n" GPU);
    assert_int_equal(opencl_driver.try(world->driver, &context), -36);
    world_says("call clCreateCommandQueue 0\n" GPU);
    assert_int_equal(opencl_driver.try(world->driver, &context), OPENCL_INVALID_COMMAND_QUEUE);
    world_says(GPU "unavailable\n");
    assert_int_equal(opencl_driver.try(world->driver, &context), OPENCL_DEVICE_NOT_AVAILABLE);
    world_says(GPU "size 0x1027 1\n");
    assert_int_equal(opencl_driver.try(world->driver, &context), OPENCL_INVALID_VALUE);
    world_says("call clGetDeviceInfo -1121\n" GPU);
    assert_int_equal(opencl_driver.try(world->driver, &context), OPENCL_CONTEXT_TERMINATED_KHR);
    assert_int_equal(world_logged("queue 0.0"), 0);
    world_says("call clReleaseCommandQueue -5\n" GPU);
    assert_int_equal(opencl_driver.try(world->driver, &context), -5);
    assert_int_equal(
        opencl_driver.try(world->driver, &(struct native_context){.device = context.device}),
        OPENCL_INVALID_CONTEXT);
    assert_int_equal(opencl_driver.destroy(world->driver, context), 0);
}

static void a_context_is_rebuilt(void **state)
{
    struct opencl_world *world = *state;
    struct native_context context;

    world_start(world, GPU);
    context = context_of(world);
    assert_int_equal(opencl_driver.rebuild(world->driver, &context, 0), 0);
    assert_int_equal(world_logged("end of context 0.0"), 1);
    assert_int_equal(world_logged("context 0.0"), 2);
    /* A failure leaves no context; the device stays, for the next attempt. */
    world_says("call clCreateContext -6\n" GPU);
    assert_int_equal(opencl_driver.rebuild(world->driver, &context, 0), -6);
    assert_null(context.pointer);
    assert_int_equal(world_logged("end of context 0.0"), 2);
    assert_int_equal(opencl_driver.rebuild(world->driver, &context, 0), -6);
    world_says("call clReleaseContext -36\n" GPU);
    assert_int_equal(opencl_driver.rebuild(world->driver, &context, 0), 0);
    /* A context is replaced even if it cannot be released. */
    assert_int_equal(opencl_driver.rebuild(world->driver, &context, 0), 0);
    assert_non_null(context.pointer);
    assert_int_equal(world_logged("context 0.0"), 4);
    world_says(GPU);
    assert_int_equal(opencl_driver.destroy(world->driver, context), 0);
    assert_int_equal(world_logged("no context"), 0);
}

/* ---- Memory ---- */

static void memory_of_the_device(void **state)
{
    static const struct {
        const char *says;
        struct optional_number total;
        struct optional_number free;
    } cases[] = {
        {"memory 17163091968\nfree 12 3\n", {true, 17163091968}, {true, 12288}},
        {"memory 17163091968\nfree 16760832\n", {true, 17163091968}, {true, 17163091968}},
        {"memory 17163091968\nfree 0 0\n", {true, 17163091968}, {true, 0}},
        {"memory 17163091968\n", {true, 17163091968}, {0}},
        {"", {0}, {0}},
        /* Impossible values are unknown. */
        {"memory 0\nfree 0 0\n", {0}, {0}},
        {"memory 17163091968\nfree 16760833 1\n", {true, 17163091968}, {0}},
        {"memory 17163091968\nfree 18014398509481984 1\n", {true, 17163091968}, {0}},
        {"memory 17163091968\nfree 12 3\nsize 0x4039 4\n", {true, 17163091968}, {0}},
        {"memory 17163091968\nfree 12 3\nsize 0x4039 4000000000\n", {true, 17163091968}, {0}},
        {"memory 17163091968\nfree 12 3\nsize 0x101f 4\n", {0}, {0}},
    };
    struct opencl_world *world = *state;
    struct native_context context;
    char says[256];

    world_start(world, GPU);
    context = context_of(world);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct driver_memory memory = {.free = {true, 1}, .total = {true, 1}};

        snprintf(says, sizeof(says), "%s%s", GPU, cases[i].says);
        world_says(says);
        assert_int_equal(opencl_driver.memory(world->driver, &context, &memory), 0);
        assert_int_equal(memory.total.known, cases[i].total.known);
        assert_int_equal(memory.total.value, cases[i].total.value);
        assert_int_equal(memory.free.known, cases[i].free.known);
        assert_int_equal(memory.free.value, cases[i].free.value);
    }
    assert_int_equal(opencl_driver.destroy(world->driver, context), 0);
}

static void memory_that_is_not_told(void **state)
{
    struct driver_memory memory = {.total = {true, 1}};
    struct opencl_world *world = *state;
    struct native_context context;

    world_start(world, GPU);
    context = context_of(world);
    world_says("call clGetDeviceInfo -5\n" GPU "memory 1000\n");
    assert_int_equal(opencl_driver.memory(world->driver, &context, &memory), -5);
    assert_int_equal(memory.total.value, 1);
    assert_int_equal(opencl_driver.destroy(world->driver, context), 0);
}

/* ---- Parts of a CPU ---- */

/* Gets the part and checks the name of its context in the log. */
static struct native_device assert_part(struct opencl_world *world, size_t number, size_t count,
                                        const char *name)
{
    struct native_device device = {0};
    struct native_context context;
    char line[32];
    unsigned before;

    snprintf(line, sizeof(line), "context %s", name);
    before = world_logged(line);
    assert_int_equal(opencl_driver.stand_in(world->driver, number, count, &device, &world->error),
                     0);
    assert_int_equal(device.number, -1);
    assert_int_equal(opencl_driver.create(world->driver, device, 0, &context), 0);
    assert_int_equal(world_logged(line), before + 1);
    assert_int_equal(opencl_driver.destroy(world->driver, context), 0);
    return device;
}

static void equal_parts(void **state)
{
    struct opencl_world *world = *state;
    struct native_device first;

    world_start(world, CPU "units 8\n");
    first = assert_part(world, 0, 3, "0.0#0"); /* one of four parts with two units each */
    assert_part(world, 1, 3, "0.0#1");
    assert_part(world, 2, 3, "0.0#2");
    assert_part(world, 2, 8, "0.0#2");
    /* Parts are kept and reused. */
    assert_ptr_equal(assert_part(world, 0, 3, "0.0#0").pointer, first.pointer);
    assert_ptr_equal(assert_part(world, 0, 4, "0.0#0").pointer, first.pointer);
    assert_int_equal(world_logged("part 0.0#0"), 2);
    assert_int_equal(world_logged("part 0.0#3"), 2);
    assert_int_equal(world_logged("part 0.0#7"), 1);
}

static void more_parts_than_units(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, CPU "units 2\n");
    for (size_t i = 0; i < 5; i++)
        assert_part(world, i, 5, i % 2 == 0 ? "0.0#0" : "0.0#1");
    assert_int_equal(world_logged("part 0.0#0"), 1);
}

static void a_cpu_that_stays_whole(void **state)
{
    static const char *const says[] = {
        CPU "units 1\n",
        CPU "units 8\nunsplittable\n",
        CPU, /* the number of units is unknown */
        CPU "units 0\n",
        CPU "units 8\nsize 0x1002 8\n",
        "call clCreateSubDevices -18\n" CPU "units 8\n",
        "call clCreateSubDevices -5\n" CPU "units 8\n",
        "call clCreateSubDevices 0\n" CPU "units 8\n",
    };
    struct opencl_world *world = *state;

    world_start(world, CPU);
    for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
        world_says(says[i]);
        for (size_t part = 0; part < 2; part++)
            assert_part(world, part, 2, "0.0");
    }
    world_says(CPU "units 8\n");
    assert_part(world, 0, 1, "0.0");
}

static void parts_that_are_said_to_be_more(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, CPU "units 2\nsplits 4000000000\n");
    assert_part(world, 0, 2, "0.0#0");
    assert_part(world, 1, 2, "0.0#1");
}

static void parts_that_are_said_to_be_fewer(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, CPU "units 4\nsplits 2\n");
    assert_part(world, 1, 4, "0.0#1");
    assert_part(world, 2, 4, "0.0#0");
}

struct taker {
    pthread_t thread;
    struct opencl_world *world;
    size_t number;
    struct native_device device;
    int code;
};

static void *take(void *argument)
{
    struct taker *taker = argument;

    taker->code =
        opencl_driver.stand_in(taker->world->driver, taker->number, 4, &taker->device, NULL);
    return NULL;
}

static void threads_split_once(void **state)
{
    struct opencl_world *world = *state;
    struct taker takers[16] = {0};

    world_start(world, CPU "units 4\n");
    for (size_t i = 0; i < 16; i++) {
        takers[i].world = world;
        takers[i].number = i % 4;
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take, &takers[i]), 0);
    }
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
        assert_int_equal(takers[i].code, 0);
        assert_ptr_equal(takers[i].device.pointer, takers[i % 4].device.pointer);
    }
    assert_ptr_not_equal(takers[0].device.pointer, takers[1].device.pointer);
    assert_int_equal(world_logged("part 0.0#0"), 1);
}

static int take_part(void *context)
{
    struct opencl_world *world = context;
    struct native_device device;

    return opencl_driver.stand_in(world->driver, 1, 2, &device, &world->error);
}

static void splitting_without_memory(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, CPU "units 2\n");
    assert_int_equal(failing_allocator_try_all(take_part, world), 1);
}

static void the_first_cpu_that_is_there(void **state)
{
    struct opencl_world *world = *state;

    world_start(world, WORLD_NVIDIA "device gpu\n" WORLD_AMD "fails -5\n" WORLD_INTEL
                                    "device cpu\nunavailable\ndevice cpu\nunits 1\n" CPU);
    assert_part(world, 0, 2, "2.1");
}

static void no_cpu(void **state)
{
    struct opencl_world *world = *state;
    struct native_device device = {.number = 7};

    world_start(world, GPU);
    assert_fails(opencl_driver.stand_in(world->driver, 0, 2, &device, &world->error),
                 BERTH_ERROR_NOT_FOUND, &world->error, "OpenCL: no CPU to stand in");
    world_says(CPU "unavailable\n");
    assert_fails(opencl_driver.stand_in(world->driver, 0, 2, &device, &world->error),
                 BERTH_ERROR_NOT_FOUND, &world->error, "OpenCL: no CPU to stand in");
    world_says(WORLD_POCL "fails -5\n");
    assert_fails(opencl_driver.stand_in(world->driver, 0, 2, &device, &world->error),
                 BERTH_ERROR_DRIVER, &world->error,
                 "OpenCL: cannot find a CPU to stand in: CL_OUT_OF_RESOURCES (OpenCL -5)");
    world_says("call clGetPlatformIDs -1001\n");
    assert_fails(opencl_driver.stand_in(world->driver, 0, 2, &device, &world->error),
                 BERTH_ERROR_NO_DEVICE, &world->error,
                 "OpenCL: no platform: no OpenCL driver is installed");
    world_says("call clCreateSubDevices -6\n" CPU "units 8\n");
    assert_fails(opencl_driver.stand_in(world->driver, 0, 2, &device, &world->error),
                 BERTH_ERROR_BUSY, &world->error,
                 "OpenCL: cannot divide the CPU: CL_OUT_OF_HOST_MEMORY (OpenCL -6)");
    assert_int_equal(device.number, 7);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_enter, world_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_driver_is_installed),
        TEST(a_driver_that_does_not_start),
        TEST(a_library_that_is_none),
        TEST(opening_without_memory),
        TEST(a_context_is_made_tried_and_given_back),
        TEST(a_context_that_cannot_be_made),
        TEST(trying_finds_what_is_wrong),
        TEST(a_context_is_rebuilt),
        TEST(memory_of_the_device),
        TEST(memory_that_is_not_told),
        TEST(equal_parts),
        TEST(more_parts_than_units),
        TEST(a_cpu_that_stays_whole),
        TEST(parts_that_are_said_to_be_more),
        TEST(parts_that_are_said_to_be_fewer),
        TEST(splitting_without_memory),
        TEST(threads_split_once),
        TEST(the_first_cpu_that_is_there),
        TEST(no_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
