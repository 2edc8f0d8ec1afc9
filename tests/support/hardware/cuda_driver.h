/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's driver behind its table (context/context_driver.h), on the machine of cuda_world.h.
 */
#ifndef TESTS_CUDA_DRIVER_H
#define TESTS_CUDA_DRIVER_H

#include "support/hardware/cuda_world.h"

#include "context/cuda.h"
#include "model/machine/device_id.h"

/* Returns a target with this id, UUID and PCI address; NULL: it has none. */
static inline struct context_target cuda_target(const char *id, const char *uuid, const char *pci)
{
    struct context_target target = {.uuid = uuid};

    assert_int_equal(device_id_parse(id, &target.id, NULL), 0);
    target.is_partition = target.id.mig != DEVICE_NO_MIG;
    if (pci != NULL)
        assert_int_equal(pci_parse(pci, &target.pci, NULL), 0);
    return target;
}

/* Opens the driver, which must succeed. The caller frees it; programs never do. */
static inline struct driver *cuda_driver_start(const struct cuda_world *world)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct driver *driver = NULL;

    assert_int_equal(cuda_driver.open(world->library, &driver, &error), 0);
    assert_non_null(driver);
    return driver;
}

/* Returns the device of a GPU of CUDA_WORLD_TWO. */
static inline struct native_device cuda_driver_device(struct driver *driver, unsigned unit)
{
    struct context_target target = unit == 0
                                       ? cuda_target("nvidia0", CUDA_WORLD_UUID_0, "0000:07:00.0")
                                       : cuda_target("nvidia1", CUDA_WORLD_UUID_1, "0000:47:00.0");
    struct berth_error error = BERTH_ERROR_INIT;
    struct native_device device;

    assert_int_equal(cuda_driver.find(driver, &target, &device, &error), 0);
    return device;
}

/* The driver, and the first GPU's device; each test begins with one context on it. */
struct cuda_fixture {
    struct cuda_world *world;
    struct driver *driver;
    struct native_device device;
    struct native_context context;
};

static inline void cuda_fixture_begin(struct cuda_fixture *fixture, void **state)
{
    fixture->world = *state;
    fixture->driver = cuda_driver_start(fixture->world);
    fixture->device = cuda_driver_device(fixture->driver, 0);
    fixture->context = (struct native_context){0};
    assert_int_equal(cuda_driver.create(fixture->driver, fixture->device, 0, &fixture->context), 0);
}

static inline struct cuda_double_counts cuda_fixture_counts(const struct cuda_fixture *fixture)
{
    return fixture->world->cuda.counts(0);
}

/* Destroys the context, and checks that each retain was released. */
static inline void cuda_fixture_finish(struct cuda_fixture *fixture)
{
    assert_int_equal(cuda_driver.destroy(fixture->driver, fixture->context), 0);
    assert_int_equal(cuda_fixture_counts(fixture).references, 0);
    assert_int_equal(cuda_fixture_counts(fixture).retains, cuda_fixture_counts(fixture).releases);
    assert_int_equal(fixture->world->cuda.depth(), 0);
    free(fixture->driver);
}

/* Returns the current context of this thread, as CUDA reports it. */
static inline void *cuda_fixture_current(const struct cuda_fixture *fixture)
{
    void *context = NULL;

    assert_int_equal(((struct cuda *)fixture->driver)->functions.get_current(&context), 0);
    return context;
}

/* Calls memory() and try() on the context and checks both results. */
static inline void assert_looks(struct cuda_fixture *fixture, int status, int try_status)
{
    struct driver_memory memory = {.free = {.known = true, .value = 77}};

    assert_int_equal(cuda_driver.memory(fixture->driver, &fixture->context, &memory), status);
    if (status != 0)
        assert_int_equal(memory.free.value, 77); /* untouched */
    assert_int_equal(cuda_driver.try(fixture->driver, &fixture->context), try_status);
}

#endif
