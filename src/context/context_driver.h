/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that creates contexts, behind one table: CUDA's driver library or OpenCL's ICD loader.
 * It knows nothing about sets, leases or generations. An `int status` is the driver's own number; 0
 * is success in both.
 */
#ifndef CONTEXT_CONTEXT_DRIVER_H
#define CONTEXT_CONTEXT_DRIVER_H

#include <berth/context.h>
#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/optional.h"
#include "model/machine/device_id.h"
#include "model/machine/pci.h"

/* The identity of a device. Its pointers belong to the caller. */
struct context_target {
    struct device_id id;
    const char *uuid; /* NULL: unknown */
    struct pci_address pci;
    bool is_partition; /* its PCI address is also that of other partitions */
    size_t slot;       /* its position among all devices */
};

/* A device of the driver, which exists as long as the process. Zeroed memory is none. */
struct native_device {
    void *pointer; /* cl_device_id; NULL for CUDA */
    int number;    /* CUdevice; -1 for OpenCL */
};

/* A context of the driver. Zeroed memory is none. */
struct native_context {
    void *pointer; /* CUcontext, cl_context; NULL: none */
    struct native_device device;
    uint64_t epoch; /* CUDA: the number of the device's resets when the context was created */
};

/* The meaning of a status. */
enum driver_verdict {
    DRIVER_FINE, /* success or a wrong call; the context is good */
    DRIVER_RETRY,
    DRIVER_REBUILD,
    DRIVER_GIVE_UP,
    DRIVER_UNSURE, /* only a try shows whether the context is good */
};

struct driver_memory {
    struct optional_number free; /* in bytes */
    struct optional_number total;
};

/* A loaded and started driver. Each driver has its own struct, which begins with this one. */
struct driver {
    const struct driver_ops *ops;
};

struct driver_ops {
    enum berth_api api;
    const char *name;     /* shown to users: "CUDA", "OpenCL" */
    const char *variable; /* the variable that names another library: BERTH_CUDA */
    const char *library;  /* libcuda.so.1 */

    /* Loads the library and starts the driver. Fails with BERTH_ERROR_NOT_FOUND (no library, or no
     * driver behind it), _NO_DEVICE (the driver has no device), _BUSY, _DRIVER, _INVALID (the
     * library is not the expected one) or _MEMORY. The library is never unloaded, because it has
     * threads and exit handlers. */
    int (*open)(const char *file, struct driver **ret_driver, struct berth_error *error);

    /* Finds the driver's device that is the target, by UUID or PCI address. Fails with
     * BERTH_ERROR_NOT_FOUND (no such device, several that cannot be told apart, or no UUID and no
     * address; the message says which), or like `open`. */
    int (*find)(struct driver *driver, const struct context_target *target,
                struct native_device *ret_device, struct berth_error *error);

    /* Gets part `number` of `count` of a device that is a CPU. If it has fewer compute units than
     * parts, several parts share one. NULL: the driver does not support this. Fails like `find`. */
    int (*stand_in)(struct driver *driver, size_t number, size_t count,
                    struct native_device *ret_device, struct berth_error *error);

    /* Creates the device's context. `flags` are CUDA's; 0: unchanged. */
    int (*create)(struct driver *driver, struct native_device device, unsigned flags,
                  struct native_context *ret_context);

    /* Releases a context, once for each `create` or `rebuild`. */
    int (*destroy)(struct driver *driver, struct native_context context);

    /* Replaces a lost context in place, also if another user of the device has replaced it already.
     * On failure context->pointer is NULL, and the call may be repeated. */
    int (*rebuild)(struct driver *driver, struct native_context *context, unsigned flags);

    /* Makes the context current in this thread; `pointer` NULL: no context is current. NULL for
     * OpenCL, which has no current context. */
    int (*make_current)(struct driver *driver, const struct native_context *context);

    /* Gets the memory of the context's device; values that the driver does not report are
     * unknown. */
    int (*memory)(struct driver *driver, const struct native_context *context,
                  struct driver_memory *ret_memory);

    /* Tests whether the context works, without waiting for the work in it. */
    int (*try)(struct driver *driver, const struct native_context *context);

    enum driver_verdict (*classify)(int status);
    /* Returns the driver's name of a status, such as CUDA_ERROR_ILLEGAL_ADDRESS; NULL: unknown. */
    const char *(*name_status)(struct driver *driver, int status);
};

extern const struct driver_ops cuda_driver;
extern const struct driver_ops opencl_driver;

/* Gets the driver of an API. The first call loads and starts it; it stays until the process ends.
 * Fails like ops->open; the next call tries again. With BERTH_SYSROOT, only a library named by
 * ops->variable is used. Any thread may call it. */
int context_driver_get(const struct driver_ops *ops, struct driver **ret_driver,
                       struct berth_error *error);

/* Sets an error for a status: the formatted message, then the driver's name of the status. The code
 * is BERTH_ERROR_BUSY for DRIVER_RETRY, otherwise `code`. Returns it. */
int context_driver_set_error(struct driver *driver, int status, int code, struct berth_error *error,
                             const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
