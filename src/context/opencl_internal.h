/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the OpenCL driver. OpenCL's answers are checked before use: sizes, counts,
 * pointers and texts.
 */
#ifndef CONTEXT_OPENCL_INTERNAL_H
#define CONTEXT_OPENCL_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "context/context_driver.h"
#include "context/opencl.h"

/* More than any machine has. */
#define OPENCL_PLATFORMS_MAX 64
#define OPENCL_DEVICES_MAX   1024

struct opencl_split;

struct opencl {
    struct driver driver;
    struct opencl_calls calls;
    void *library;
    pthread_mutex_t mutex;       /* protects the following members */
    struct opencl_split *splits; /* a linked list of divided CPUs */
};

struct opencl_platforms {
    opencl_platform items[OPENCL_PLATFORMS_MAX];
    uint32_t count;
};

struct opencl_devices {
    opencl_device items[OPENCL_DEVICES_MAX];
    uint32_t count;
};

static inline struct opencl *opencl_of(struct driver *driver)
{
    return (struct opencl *)driver;
}

/* Frees the driver's struct. The library stays loaded, and the parts of CPUs continue to exist. */
void opencl_destroy(struct opencl *opencl);

/* Frees the list of divided CPUs. */
void opencl_forget_splits(struct opencl *opencl);

/* Gets the platforms in the loader's order. Fails with BERTH_ERROR_NO_DEVICE (there are none),
 * _BUSY or _DRIVER; *ret_platforms is empty then. */
int opencl_list_platforms(struct opencl *opencl, struct opencl_platforms *ret_platforms,
                          struct berth_error *error);

/* Gets the platform's devices of these types (OPENCL_DEVICE_TYPE_...), without duplicates. It is
 * not a failure if there are none. Returns the driver's status. */
int opencl_list_devices(struct opencl *opencl, opencl_platform platform, uint64_t types,
                        struct opencl_devices *ret_devices);

/* Gets a fact of exactly this size. Returns the driver's status; OPENCL_INVALID_VALUE also if the
 * answer has another size. */
int opencl_device_info(struct opencl *opencl, opencl_device device, uint32_t name, void *value,
                       size_t size);

/* Gets a text of the platform, truncated to the size; "" if there is none. */
void opencl_platform_text(struct opencl *opencl, opencl_platform platform, uint32_t name,
                          char *text, size_t size);

/* Members of the driver's table. */
int opencl_find(struct driver *driver, const struct context_target *target,
                struct native_device *ret_device, struct berth_error *error);
int opencl_stand_in(struct driver *driver, size_t number, size_t count,
                    struct native_device *ret_device, struct berth_error *error);
enum driver_verdict opencl_classify(int status);
const char *opencl_name_status(struct driver *driver, int status);

#endif
