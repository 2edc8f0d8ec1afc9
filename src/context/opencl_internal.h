/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the OpenCL driver have in common. Whatever OpenCL answers is not believed
 * before it was looked at: sizes, counts, pointers, texts.
 */
#ifndef CONTEXT_OPENCL_INTERNAL_H
#define CONTEXT_OPENCL_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "context/context_driver.h"
#include "context/opencl.h"

/* More of either than any machine has. */
#define OPENCL_PLATFORMS_MAX 64
#define OPENCL_DEVICES_MAX   1024

struct opencl_split;

struct opencl {
    struct driver driver;
    struct opencl_calls calls;
    void *library;
    pthread_mutex_t mutex;       /* for what follows */
    struct opencl_split *splits; /* of CPUs: the first of a list */
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

/* Frees it; its library stays, and the parts of CPUs that it knew. */
void opencl_destroy(struct opencl *opencl);

/* Frees what it knows of parts. */
void opencl_forget_splits(struct opencl *opencl);

/* The platforms, in the loader's order. Fails with BERTH_ERROR_NO_DEVICE (there are none), _BUSY,
 * _DRIVER; there are none then. */
int opencl_list_platforms(struct opencl *opencl, struct opencl_platforms *ret_platforms,
                          struct berth_error *error);

/* The platform's devices of these types (OPENCL_DEVICE_TYPE_...), each once; none is no failure.
 * Returns the driver's status. */
int opencl_list_devices(struct opencl *opencl, opencl_platform platform, uint64_t types,
                        struct opencl_devices *ret_devices);

/* Fills in a fact of exactly this size. Returns the driver's status; OPENCL_INVALID_VALUE also for
 * an answer of another size. */
int opencl_device_info(struct opencl *opencl, opencl_device device, uint32_t name, void *value,
                       size_t size);

/* The platform's word, cut to the size; "" where it has none. */
void opencl_platform_text(struct opencl *opencl, opencl_platform platform, uint32_t name,
                          char *text, size_t size);

/* Members of the table. */
int opencl_find(struct driver *driver, const struct context_target *target,
                struct native_device *ret_device, struct berth_error *error);
int opencl_stand_in(struct driver *driver, size_t number, size_t count,
                    struct native_device *ret_device, struct berth_error *error);
enum driver_verdict opencl_classify(int status);
const char *opencl_name_status(struct driver *driver, int status);

#endif
