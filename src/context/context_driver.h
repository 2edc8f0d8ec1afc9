/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that makes contexts, behind one table: CUDA's driver library, OpenCL's ICD loader. It
 * knows nothing of sets, leases or generations. Numbers that it returns as `int status` are the
 * driver's own, of which 0 is success in both.
 */
#ifndef CONTEXT_CONTEXT_DRIVER_H
#define CONTEXT_CONTEXT_DRIVER_H

#include <berth/context.h>
#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/device_id.h"
#include "model/optional.h"
#include "model/pci.h"

/* What a device is known by. Points to the caller's. */
struct context_target {
    struct device_id id;
    const char *uuid; /* NULL: unknown */
    struct pci_address pci;
    bool is_partition; /* of a GPU whose PCI address its other partitions have, too */
    size_t slot;       /* which of all devices it is */
};

/* A device as its driver has it, which keeps it as long as the process. Zeroed memory is none. */
struct native_device {
    void *pointer; /* cl_device_id; NULL for CUDA */
    int number;    /* CUdevice; -1 for OpenCL */
};

/* A context as its driver has it. Zeroed memory is none. */
struct native_context {
    void *pointer; /* CUcontext, cl_context; NULL: none */
    struct native_device device;
    uint64_t epoch; /* the driver's own: which of the contexts that the device had */
};

/* Of which class a status is. */
enum driver_verdict {
    DRIVER_FINE, /* success, or a call that was wrong: the context is good */
    DRIVER_RETRY,
    DRIVER_REBUILD,
    DRIVER_GIVE_UP,
    DRIVER_UNSURE, /* only trying the context tells */
};

struct driver_memory {
    struct optional_number free; /* bytes */
    struct optional_number total;
};

/* A loaded and started driver; each has a struct of its own that begins with this. */
struct driver {
    const struct driver_ops *ops;
};

struct driver_ops {
    enum berth_api api;
    const char *name;     /* for people: "CUDA", "OpenCL" */
    const char *variable; /* that names another library: BERTH_CUDA */
    const char *library;  /* libcuda.so.1 */

    /* Loads the library and starts the driver. Fails with BERTH_ERROR_NOT_FOUND (no library, or no
     * driver behind it), _NO_DEVICE (it says so itself), _BUSY, _DRIVER, _INVALID (a library that
     * is not what it should be), _MEMORY. It is never unloaded: libraries of this kind have threads
     * and exit handlers. */
    int (*open)(const char *file, struct driver **ret_driver, struct berth_error *error);

    /* The one device of the driver that is the target, by UUID or PCI address. Fails with
     * BERTH_ERROR_NOT_FOUND (it shows none, or cannot tell which of several, or nothing is known
     * to find it by; the message says which), or as open. */
    int (*find)(struct driver *driver, const struct context_target *target,
                struct native_device *ret_device, struct berth_error *error);

    /* Part number `number` of `count` of a device that is a CPU; with fewer compute units than
     * parts, several have the same one. NULL: the driver has no such thing. As find. */
    int (*stand_in)(struct driver *driver, size_t number, size_t count,
                    struct native_device *ret_device, struct berth_error *error);

    /* Makes the device's context. `flags` are those of CUDA; 0: as they are. */
    int (*create)(struct driver *driver, struct native_device device, unsigned flags,
                  struct native_context *ret_context);

    /* Gives back what create or rebuild made, once for each. */
    int (*destroy)(struct driver *driver, struct native_context context);

    /* Makes a lost context anew, in place; also after it was made anew for others. On failure there
     * is none: context->pointer is NULL, and it may be tried again. */
    int (*rebuild)(struct driver *driver, struct native_context *context, unsigned flags);

    /* Makes it current in this thread; `pointer` NULL: none is. OpenCL has no such thing: NULL. */
    int (*make_current)(struct driver *driver, const struct native_context *context);

    /* How much memory its device has; what the driver cannot tell is unknown. */
    int (*memory)(struct driver *driver, const struct native_context *context,
                  struct driver_memory *ret_memory);

    /* Whether the context works, without waiting for what runs in it. */
    int (*try)(struct driver *driver, const struct native_context *context);

    enum driver_verdict (*classify)(int status);
    /* The driver's word for it, such as CUDA_ERROR_ILLEGAL_ADDRESS; NULL: none known. */
    const char *(*name_status)(struct driver *driver, int status);
};

extern const struct driver_ops cuda_driver;
extern const struct driver_ops opencl_driver;

/* The driver of an API, loaded and started by whoever needs it first and kept as long as the
 * process. As ops->open; a failure is not remembered. With BERTH_SYSROOT only a library that is
 * named counts. Any thread may call it. */
int context_driver_get(const struct driver_ops *ops, struct driver **ret_driver,
                       struct berth_error *error);

/* Sets an error for a status: what was wanted, what the driver said. The code is BERTH_ERROR_BUSY
 * for DRIVER_RETRY, else `code`. Returns it. */
int context_driver_set_error(struct driver *driver, int status, int code, struct berth_error *error,
                             const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
