/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of CUDA's driver API that berth uses. They are declared here from its public
 * documentation: the library is loaded at run time, and the build needs nothing from NVIDIA.
 */
#ifndef CONTEXT_CUDA_H
#define CONTEXT_CUDA_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "context/context_driver.h"

/* The return codes that berth's code uses by name; cuda_faults.c has all of them. */
enum cuda_status {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,  /* the first of the errors of captures */
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908, /* the last of them */
    CUDA_ERROR_UNKNOWN = 999,
};

/* The bits of a context's flags that form one number: how a thread waits. */
#define CUDA_SCHED_MASK 0x07u

/* More devices than any machine has. A larger count is refused. */
#define CUDA_DEVICES_MAX 256

struct cuda_uuid {
    unsigned char bytes[16];
};
_Static_assert(sizeof(struct cuda_uuid) == 16, "cuda_uuid has another size than CUDA's");

/* X(member, symbol, is_required, parameters): all functions that berth uses. They return a
 * cuda_status as an int, because newer drivers have more return codes. A device is an int; a
 * context and a stream are pointers.
 *
 * Primary contexts need CUDA 7.0. The _v2 functions to release them, to reset them and to set their
 * flags came with 11.0. cuDeviceGetUuid came with 9.2; its _v2, which distinguishes MIG instances,
 * with 11.4. Everything else is older than 7.0. */
#define CUDA_FUNCTIONS(X)                                                              \
    X(init, "cuInit", true, (unsigned flags))                                          \
    X(count, "cuDeviceGetCount", true, (int *ret_count))                               \
    X(by_ordinal, "cuDeviceGet", true, (int *ret_device, int ordinal))                 \
    X(uuid_v1, "cuDeviceGetUuid", false, (struct cuda_uuid * ret_uuid, int device))    \
    X(uuid_v2, "cuDeviceGetUuid_v2", false, (struct cuda_uuid * ret_uuid, int device)) \
    X(pci, "cuDeviceGetPCIBusId", false, (char *text, int size, int device))           \
    X(retain, "cuDevicePrimaryCtxRetain", true, (void **ret_context, int device))      \
    X(release, "cuDevicePrimaryCtxRelease_v2", false, (int device))                    \
    X(release_v1, "cuDevicePrimaryCtxRelease", false, (int device))                    \
    X(reset, "cuDevicePrimaryCtxReset_v2", false, (int device))                        \
    X(reset_v1, "cuDevicePrimaryCtxReset", false, (int device))                        \
    X(set_flags, "cuDevicePrimaryCtxSetFlags_v2", false, (int device, unsigned flags)) \
    X(set_flags_v1, "cuDevicePrimaryCtxSetFlags", false, (int device, unsigned flags)) \
    X(state, "cuDevicePrimaryCtxGetState", true,                                       \
      (int device, unsigned *ret_flags, int *ret_active))                              \
    X(get_current, "cuCtxGetCurrent", true, (void **ret_context))                      \
    X(set_current, "cuCtxSetCurrent", true, (void *context))                           \
    X(push, "cuCtxPushCurrent_v2", true, (void *context))                              \
    X(pop, "cuCtxPopCurrent_v2", true, (void **ret_context))                           \
    X(memory, "cuMemGetInfo_v2", true, (size_t * ret_free, size_t * ret_total))        \
    X(stream_query, "cuStreamQuery", true, (void *stream))                             \
    X(error_name, "cuGetErrorName", false, (int status, const char **ret_name))

/* X(member, symbol): functions that need one of two versions; MEMBER_v1 is used if MEMBER is
 * missing. */
#define CUDA_VERSIONED(X)                   \
    X(release, "cuDevicePrimaryCtxRelease") \
    X(reset, "cuDevicePrimaryCtxReset")     \
    X(set_flags, "cuDevicePrimaryCtxSetFlags")

/* The library's functions; NULL: the library lacks the function. */
struct cuda_functions {
#define CUDA_MEMBER(member, symbol, required, parameters) int(*member) parameters;
    CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
};

/* This process's resets of a device's primary context. */
struct cuda_primary {
    pthread_mutex_t mutex; /* held from reading `resets` to the matching retain */
    uint64_t resets;
};

struct cuda {
    struct driver driver;
    struct cuda_functions functions;
    struct cuda_primary primaries[CUDA_DEVICES_MAX];
};

/* The functions of driver_ops. */
int cuda_find(struct driver *driver, const struct context_target *target,
              struct native_device *ret_device, struct berth_error *error);
enum driver_verdict cuda_classify(int status);
const char *cuda_name_status(struct driver *driver, int status);

#endif
