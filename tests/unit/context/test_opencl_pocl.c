/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL driver with a real OpenCL that computes on parts of the CPU: PoCL, or another one with
 * a CPU. Also compares the declarations in opencl.h with OpenCL's headers.
 */
#include "support/unit.h"

#ifdef HAVE_OPENCL

#include "support/hardware/opencl_adder.h"

#include <CL/cl_egl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "context/context_driver.h"
#include "context/opencl.h"
#include "support/temporary_directory.h"

/* ---- The headers ---- */

#define SAME_STATUS(word, number, verdict) \
    _Static_assert(CL_##word == (number), "CL_" #word " is another number");
OPENCL_STATUSES(SAME_STATUS)

#define SAME_WORD(word, number) \
    _Static_assert(CL_##word == (number), "CL_" #word " is another number");
OPENCL_WORDS(SAME_WORD)

#define SAME_TYPE(theirs, ours) \
    _Static_assert(__builtin_types_compatible_p(theirs, ours), #theirs " is not " #ours);
SAME_TYPE(cl_int, int32_t)
SAME_TYPE(cl_uint, uint32_t)
SAME_TYPE(cl_bool, uint32_t)
SAME_TYPE(cl_platform_info, uint32_t)
SAME_TYPE(cl_device_info, uint32_t)
SAME_TYPE(cl_device_type, uint64_t)
SAME_TYPE(cl_ulong, uint64_t)
SAME_TYPE(cl_command_queue_properties, uint64_t)
SAME_TYPE(cl_context_properties, intptr_t)
SAME_TYPE(cl_device_partition_property, intptr_t)

#define SAME_PLACE(theirs, their_member, ours, our_member)                                  \
    _Static_assert(sizeof(theirs) == sizeof(struct ours) &&                                 \
                       offsetof(theirs, their_member) == offsetof(struct ours, our_member), \
                   #ours "." #our_member " is elsewhere");
SAME_PLACE(cl_device_pci_bus_info_khr, pci_domain, opencl_pci_bus_info, domain)
SAME_PLACE(cl_device_pci_bus_info_khr, pci_bus, opencl_pci_bus_info, bus)
SAME_PLACE(cl_device_pci_bus_info_khr, pci_device, opencl_pci_bus_info, device)
SAME_PLACE(cl_device_pci_bus_info_khr, pci_function, opencl_pci_bus_info, function)
SAME_PLACE(cl_device_topology_amd, pcie.type, opencl_topology_amd, type)
SAME_PLACE(cl_device_topology_amd, pcie.bus, opencl_topology_amd, bus)
SAME_PLACE(cl_device_topology_amd, pcie.device, opencl_topology_amd, device)
SAME_PLACE(cl_device_topology_amd, pcie.function, opencl_topology_amd, function)
_Static_assert(CL_UUID_SIZE_KHR == OPENCL_UUID_SIZE, "a UUID has another size");

/* ---- The environment ---- */

enum { ROUNDS = 10, LIMIT = 8 };

struct world {
    void *directory;
    struct driver *driver;
};

/* PoCL reads the variable for its kernel cache only once. */
static int enter(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    if (world == NULL || temporary_directory_enter(&world->directory) < 0)
        return -1;
    setenv("POCL_CACHE_DIR", world->directory, 1);
    *state = world;
    return 0;
}

static int leave(void **state)
{
    struct world *world = *state;
    int result = temporary_directory_leave(&world->directory);

    free(world);
    return result;
}

/* Returns a part of the CPU; without a CPU the test is skipped. */
static struct native_device part_of(struct world *world, size_t number, size_t count)
{
    struct native_device device = {0};
    struct berth_error error = BERTH_ERROR_INIT;

    opencl_need();
    if ((world->driver == NULL && context_driver_get(&opencl_driver, &world->driver, &error) < 0) ||
        opencl_driver.stand_in(world->driver, number, count, &device, &error) < 0) {
        print_message("skip: %s\n", error.message);
        skip();
    }
    return device;
}

static cl_uint units_of(struct native_device device)
{
    cl_uint units = 0;

    assert_int_equal(
        clGetDeviceInfo(device.pointer, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL),
        CL_SUCCESS);
    return units;
}

static struct native_context context_on(struct world *world, struct native_device device)
{
    struct native_context context = {0};

    assert_int_equal(opencl_driver.create(world->driver, device, 0, &context), CL_SUCCESS);
    assert_ptr_equal(context.device.pointer, device.pointer);
    return context;
}

static void end(struct world *world, struct native_context context)
{
    assert_int_equal(opencl_driver.destroy(world->driver, context), CL_SUCCESS);
}

/* ---- Computing ---- */

static void assert_computes(const struct native_context *context)
{
    struct adder adder = {0};
    size_t wrong = 1;

    assert_int_equal(adder_start(&adder, context->pointer, context->device.pointer), CL_SUCCESS);
    assert_int_equal(adder_run(&adder, 3, &wrong), CL_SUCCESS);
    assert_int_equal(wrong, 0);
    adder_finish(&adder);
}

/* ---- The tests ---- */

static void parts_are_equal_and_apart(void **state)
{
    struct world *world = *state;
    struct native_device whole = part_of(world, 0, 1);
    cl_uint units = units_of(whole);
    size_t count = units < LIMIT ? units : LIMIT;
    struct native_device parts[LIMIT];

    for (size_t i = 0; i < count; i++) {
        parts[i] = part_of(world, i, count);
        assert_int_equal(units_of(parts[i]), units / count);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(parts[i].pointer, parts[k].pointer);
    }
    assert_int_equal(units_of(whole), units); /* the whole device still exists */
}

static void more_parts_than_units(void **state)
{
    struct world *world = *state;
    size_t count = units_of(part_of(world, 0, 1)) + 1;

    for (size_t i = 0; i < count; i++) {
        struct native_context context = context_on(world, part_of(world, i, count));

        assert_int_equal(units_of(context.device), 1);
        assert_computes(&context);
        end(world, context);
    }
}

static void a_part_is_kept(void **state)
{
    struct world *world = *state;
    struct native_device part = part_of(world, 1, 2);

    assert_ptr_equal(part_of(world, 1, 2).pointer, part.pointer);
    assert_int_not_equal(units_of(part), 0);
}

static void a_context_has_one_device_and_its_platform(void **state)
{
    struct world *world = *state;
    struct native_context context = context_on(world, part_of(world, 0, 2));
    cl_context_properties properties[3] = {0};
    cl_platform_id platform = NULL;
    cl_uint count = 0;

    assert_int_equal(
        clGetContextInfo(context.pointer, CL_CONTEXT_NUM_DEVICES, sizeof(count), &count, NULL),
        CL_SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(clGetDeviceInfo(context.device.pointer, CL_DEVICE_PLATFORM, sizeof(platform),
                                     &platform, NULL),
                     CL_SUCCESS);
    assert_int_equal(clGetContextInfo(context.pointer, CL_CONTEXT_PROPERTIES, sizeof(properties),
                                      properties, NULL),
                     CL_SUCCESS);
    assert_int_equal(properties[0], CL_CONTEXT_PLATFORM);
    assert_ptr_equal((void *)properties[1], platform);
    end(world, context);
}

struct worker {
    pthread_t thread;
    struct native_context context;
    int seed;
    cl_int status;
    size_t wrong;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct adder adder = {0};

    worker->status = adder_start(&adder, worker->context.pointer, worker->context.device.pointer);
    for (int i = 0; i < ROUNDS && worker->status == CL_SUCCESS && worker->wrong == 0; i++)
        worker->status = adder_run(&adder, worker->seed + i, &worker->wrong);
    adder_finish(&adder);
    return NULL;
}

static void threads_compute_on_parts_of_their_own(void **state)
{
    struct world *world = *state;
    struct worker workers[4] = {0};

    for (int i = 0; i < 4; i++) {
        workers[i].context = context_on(world, part_of(world, (size_t)i, 4));
        workers[i].seed = 100 * i + 1;
        workers[i].wrong = 0;
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(workers[i].status, CL_SUCCESS);
        assert_int_equal(workers[i].wrong, 0);
        end(world, workers[i].context);
    }
}

static void a_rebuilt_context_computes(void **state)
{
    struct world *world = *state;
    struct native_context context = context_on(world, part_of(world, 1, 2));

    assert_computes(&context);
    assert_int_equal(opencl_driver.rebuild(world->driver, &context, 0), CL_SUCCESS);
    assert_computes(&context);
    end(world, context);
}

static void trying_does_not_wait(void **state)
{
    struct world *world = *state;
    struct native_context context = context_on(world, part_of(world, 0, 2));
    const size_t elements = ADDER_ELEMENTS;
    struct adder adder = {0};
    cl_event gate;
    cl_event event;
    cl_int status;

    assert_int_equal(adder_start(&adder, context.pointer, context.device.pointer), CL_SUCCESS);
    gate = clCreateUserEvent(context.pointer, &status);
    assert_int_equal(status, CL_SUCCESS);
    assert_int_equal(clEnqueueNDRangeKernel(adder.queue, adder.kernel, 1, NULL, &elements, NULL, 1,
                                            &gate, &event),
                     CL_SUCCESS);
    assert_int_equal(clFlush(adder.queue), CL_SUCCESS);
    assert_int_equal(opencl_driver.try(world->driver, &context), CL_SUCCESS);
    assert_int_equal(
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL),
        CL_SUCCESS);
    assert_int_not_equal(status, CL_COMPLETE);
    assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(clFinish(adder.queue), CL_SUCCESS);
    clReleaseEvent(event);
    clReleaseEvent(gate);
    adder_finish(&adder);
    end(world, context);
}

static void a_mistake_leaves_the_context_good(void **state)
{
    struct world *world = *state;
    struct native_context context = context_on(world, part_of(world, 0, 2));
    cl_int status = CL_SUCCESS;

    assert_null(clCreateBuffer(context.pointer, CL_MEM_READ_WRITE, 0, NULL, &status));
    assert_string_equal(opencl_driver.name_status(world->driver, status), "CL_INVALID_BUFFER_SIZE");
    assert_int_equal(opencl_driver.classify(status), DRIVER_FINE);
    assert_int_equal(opencl_driver.try(world->driver, &context), CL_SUCCESS);
    assert_computes(&context);
    end(world, context);
}

static void memory_is_the_devices(void **state)
{
    struct world *world = *state;
    struct native_context context = context_on(world, part_of(world, 0, 2));
    struct driver_memory memory = {0};
    cl_ulong total = 0;

    assert_int_equal(clGetDeviceInfo(context.device.pointer, CL_DEVICE_GLOBAL_MEM_SIZE,
                                     sizeof(total), &total, NULL),
                     CL_SUCCESS);
    assert_int_equal(opencl_driver.memory(world->driver, &context, &memory), CL_SUCCESS);
    assert_true(memory.total.known);
    assert_int_equal(memory.total.value, total);
    assert_false(memory.free.known);
    end(world, context);
}

static void a_gpu_that_is_not_there(void **state)
{
    const struct context_target target = {
        .id = {.vendor = VENDOR_NVIDIA, .index = 999, .mig = DEVICE_NO_MIG},
        .uuid = "GPU-ffffffff-ffff-ffff-ffff-fffffffffff0",
        .pci = {.known = true, .domain = 0xfffffff, .bus = 255, .device = 31, .function = 7},
    };
    struct world *world = *state;
    struct berth_error error = BERTH_ERROR_INIT;
    struct native_device device = part_of(world, 0, 1);

    assert_int_equal(opencl_driver.find(world->driver, &target, &device, &error),
                     BERTH_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "OpenCL: cannot find GPU-ffffffff-ffff-ffff-ffff-"
                                          "fffffffffff0, fffffff:ff:1f.7"));
}

#else

static int enter(void **state)
{
    (void)state;
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return 0;
}

static void all_of_it(void **state)
{
    (void)state;
    print_message("skip: built without OpenCL\n");
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef HAVE_OPENCL
        cmocka_unit_test(parts_are_equal_and_apart),
        cmocka_unit_test(more_parts_than_units),
        cmocka_unit_test(a_part_is_kept),
        cmocka_unit_test(a_context_has_one_device_and_its_platform),
        cmocka_unit_test(threads_compute_on_parts_of_their_own),
        cmocka_unit_test(a_rebuilt_context_computes),
        cmocka_unit_test(trying_does_not_wait),
        cmocka_unit_test(a_mistake_leaves_the_context_good),
        cmocka_unit_test(memory_is_the_devices),
        cmocka_unit_test(a_gpu_that_is_not_there),
#else
        cmocka_unit_test(all_of_it),
#endif
    };

    return cmocka_run_group_tests(tests, enter, leave);
}
