/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's driver behind its table (context/driver.h), on the machine of cuda_world.h.
 */
#ifndef TESTS_CUDA_DRIVER_H
#define TESTS_CUDA_DRIVER_H

#include "support/cuda_world.h"

#include "context/driver.h"
#include "model/device_id.h"

/* A target by its UUID or PCI address; NULL: it has none. */
static inline struct context_target cuda_target(const char *id, const char *uuid, const char *pci)
{
    struct context_target target = {.uuid = uuid};

    assert_int_equal(device_id_parse(id, &target.id, NULL), 0);
    target.is_partition = target.id.mig != DEVICE_NO_MIG;
    if (pci != NULL)
        assert_int_equal(pci_parse(pci, &target.pci, NULL), 0);
    return target;
}

/* Opens the driver, which must work. It is the caller's to free: programs keep theirs. */
static inline struct driver *cuda_driver_start(const struct cuda_world *world)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct driver *driver = NULL;

    assert_int_equal(cuda_driver.open(world->library, &driver, &error), 0);
    assert_non_null(driver);
    return driver;
}

/* The device of a whole GPU of CUDA_WORLD_TWO. */
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

#endif
