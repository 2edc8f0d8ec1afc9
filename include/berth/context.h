/* SPDX-License-Identifier: Apache-2.0
 *
 * berth/context.h: contexts for the devices of a lease, ready to compute in.
 *
 *     struct berth_context_set set;
 *     struct berth_context context;
 *     struct berth_context_info info = {.size = sizeof(info)};
 *
 *     berth_contexts_of_lease(pool, lease, NULL, &set, &error);
 *     berth_contexts_next(pool, set, &context, &error);
 *     berth_context_make_current(pool, context, &error);
 *     berth_context_info(pool, context, &info, &error);
 *     ... info.context is a CUcontext or a cl_context, info.device its device ...
 *     berth_release(pool, lease, &error);    ends the contexts, then returns the devices
 *
 * A set has one context for each of its devices, at positions from 0. It belongs to a lease and
 * ends with it, or it belongs to the program, which releases it. Devices are found by their UUID or
 * PCI address, not by the order in which their driver counts them. So a set never computes on
 * another lease's device.
 *
 * The vendors' libraries are loaded at run time: libcuda.so.1 and libOpenCL.so.1, or the libraries
 * that BERTH_CUDA and BERTH_OPENCL name. With BERTH_SYSROOT, only named libraries are used. They
 * stay loaded. They run in the calling thread, so every call here may block for as long as the
 * driver does. Any thread may make these calls. Calls on one context are serialised; calls on
 * several contexts run in parallel. Handles are values. A handle that was released, belongs to
 * another pool or to an earlier context is refused.
 */
#ifndef BERTH_CONTEXT_H
#define BERTH_CONTEXT_H

#include <berth/berth.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Sets ---- */

enum berth_api {
    BERTH_API_ANY = 0, /* CUDA for NVIDIA devices if its driver is installed, otherwise OpenCL */
    BERTH_API_CUDA = 1,
    BERTH_API_OPENCL = 2,
};

/* Flags of CUDA contexts: how a thread waits for the device, and others. The numbers are the
 * driver's (CU_CTX_...). */
enum berth_cuda_flags {
    BERTH_CUDA_SCHED_AUTO = 0x00,
    BERTH_CUDA_SCHED_SPIN = 0x01,
    BERTH_CUDA_SCHED_YIELD = 0x02,
    BERTH_CUDA_SCHED_BLOCKING_SYNC = 0x04,
    BERTH_CUDA_MAP_HOST = 0x08,
    BERTH_CUDA_LMEM_RESIZE_TO_MAX = 0x10,
};

struct berth_context_options {
    size_t size; /* sizeof(struct berth_context_options): the members that the caller knows */
    enum berth_api api;
    /* Flags of CUDA's primary contexts, which the program's other libraries share. 0: unchanged.
     * All primary contexts have MAP_HOST. */
    unsigned cuda_flags;
    /* Gives devices that are not in this machine equal parts of an OpenCL device that is a CPU, for
     * tests. Applies to devices of an inventory or of the program, never to those of the hardware.
     */
    bool stand_in;
};

/* A set, by value. */
struct berth_context_set {
    uint64_t id;
    uint64_t pool;
};

/* One context of a set, by value. */
struct berth_context {
    uint64_t set;
    uint64_t pool;
    uint32_t position;
    uint32_t generation; /* 1 at first; incremented by each rebuild */
};

/* Create a set, completely or not at all. `options` may be NULL. They fail with
 *
 *   BERTH_ERROR_INVALID    no slots, a duplicate slot, invalid flags or options
 *   BERTH_ERROR_NO_DEVICE  the pool is empty, or the driver has no device
 *   BERTH_ERROR_NOT_FOUND  no driver is installed for a device, or the driver does not show it
 *   BERTH_ERROR_BUSY       the driver has no memory, or another process uses the device: try later
 *   BERTH_ERROR_DRIVER     the driver failed
 *   BERTH_ERROR_MEMORY, BERTH_ERROR_FORKED */

/* Create a set for all devices of the pool in slot order, or for the given slots in this order
 * (fails also with BERTH_ERROR_RANGE). The program must hold leases on the devices that it computes
 * on. */
int berth_contexts_create(struct berth_pool *pool, const struct berth_context_options *options,
                          struct berth_context_set *ret_set, struct berth_error *error);
int berth_contexts_create_on(struct berth_pool *pool, const size_t *slots, size_t count,
                             const struct berth_context_options *options,
                             struct berth_context_set *ret_set, struct berth_error *error);

/* Creates a set for the devices of a lease, in the lease's order. A lease has one set: another call
 * returns the same set and ignores its options. The set ends with the lease: berth_release() first
 * ends the contexts, then returns the devices. Fails also with BERTH_ERROR_NOT_FOUND if the lease
 * is not held. */
int berth_contexts_of_lease(struct berth_pool *pool, struct berth_lease lease,
                            const struct berth_context_options *options,
                            struct berth_context_set *ret_set, struct berth_error *error);

/* All calls below fail with BERTH_ERROR_NOT_FOUND if the set or the context is released, and with
 * BERTH_ERROR_FORKED. */

/* Ends a set: waits for calls on it in other threads and releases its contexts. Must be called
 * once; a second call fails with BERTH_ERROR_NOT_FOUND. berth_pool_close() does this for all sets.
 */
int berth_contexts_release(struct berth_pool *pool, struct berth_context_set set,
                           struct berth_error *error);

/* Returns the number of contexts that the set was created with. */
int berth_contexts_count(struct berth_pool *pool, struct berth_context_set set,
                         struct berth_error *error);

/* Gets the context at a position, 0 to count-1. Fails with BERTH_ERROR_RANGE for other positions.
 */
int berth_contexts_at(struct berth_pool *pool, struct berth_context_set set, size_t position,
                      struct berth_context *ret_context, struct berth_error *error);

/* Gets the context on a device, by its id such as "nvidia0". Fails with BERTH_ERROR_SYNTAX (not an
 * id) or _NOT_FOUND (the set has no such device). */
int berth_contexts_find(struct berth_pool *pool, struct berth_context_set set, const char *id,
                        struct berth_context *ret_context, struct berth_error *error);

/* Fills in up to `capacity` contexts, in order and without released ones. Returns the number of
 * contexts that there are. */
int berth_contexts_list(struct berth_pool *pool, struct berth_context_set set,
                        struct berth_context *ret_contexts, size_t capacity,
                        struct berth_error *error);

/* Gets the next good context in turn, on a device that is present and not sick. Each good context
 * gets the same share over all calls of all threads. Fails with BERTH_ERROR_LOST if no context is
 * good. */
int berth_contexts_next(struct berth_pool *pool, struct berth_context_set set,
                        struct berth_context *ret_context, struct berth_error *error);

/* Gets the good context whose device has the most free memory now; if several have the same, the
 * first one. `bytes` is the amount that the caller will allocate. It counts as used until the
 * device's figure changes, so that threads that choose at the same time do not choose the same
 * device. Fails with BERTH_ERROR_LOST, _BUSY (no device has that much) or _IMPOSSIBLE (the free
 * memory of all devices is unknown; unknown values are never compared). */
int berth_contexts_best(struct berth_pool *pool, struct berth_context_set set, uint64_t bytes,
                        struct berth_context *ret_context, struct berth_error *error);

/* Writes one readable line, like snprintf(): at most `size` bytes with the zero at the end. Returns
 * the length of the whole line. "2 contexts: nvidia0 CUDA, nvidia1 CUDA (lost)". */
int berth_contexts_describe(struct berth_pool *pool, struct berth_context_set set, char *buffer,
                            size_t size, struct berth_error *error);

/* ---- Contexts ---- */

/* The effect of a failure on a context. */
enum berth_fault {
    BERTH_FAULT_NONE = 0,    /* the context is good: the call was wrong, or there is no failure */
    BERTH_FAULT_RETRY = 1,   /* the context is good; the call may succeed later or with less */
    BERTH_FAULT_REBUILD = 2, /* the context is lost with everything in it; a new one may work */
    BERTH_FAULT_GIVE_UP = 3, /* this process can no longer use the device */
};

struct berth_context_info {
    size_t size; /* sizeof(struct berth_context_info), set by the caller */
    enum berth_api api;
    size_t slot;
    enum berth_vendor vendor;
    uint32_t index;
    uint32_t mig;
    void *context;          /* CUcontext or cl_context; NULL: lost */
    void *device;           /* cl_device_id; NULL for CUDA */
    int cuda_device;        /* CUdevice; -1 for OpenCL */
    enum berth_fault fault; /* REBUILD or GIVE_UP: the context is lost */
    bool stands_in;         /* it is a part of a CPU instead of the device */
    int64_t memory_free;    /* bytes, from the driver or the pool's last sample; or BERTH_UNKNOWN */
    int64_t memory_total;   /* bytes, from the driver; or BERTH_UNKNOWN */
};

/* Gets all facts about a context, also if it is lost. The program may use the pointers until the
 * context is released or rebuilt, and must not destroy them. Fails also with BERTH_ERROR_STALE or
 * _INVALID (`size`). */
int berth_context_info(struct berth_pool *pool, struct berth_context context,
                       struct berth_context_info *ret_info, struct berth_error *error);

/* Makes the context current in this thread: CUDA's current context. OpenCL has no current context,
 * so berth only remembers the context. Fails with BERTH_ERROR_LOST (the message says whether it can
 * be rebuilt), _STALE, _BUSY or _DRIVER. */
int berth_context_make_current(struct berth_pool *pool, struct berth_context context,
                               struct berth_error *error);

/* Gets the context that this thread made current last, if it is still good. Fails with
 * BERTH_ERROR_NOT_FOUND (this thread made none current, or it was released), _STALE or _LOST. */
int berth_context_current(struct berth_pool *pool, struct berth_context *ret_context,
                          struct berth_error *error);

/* Reports the driver's answer to a call of the program in this context (a CUresult or an OpenCL
 * error code), and gets the class of that fault. If the number alone does not show the class, berth
 * tests the context. A lost context stays lost until it is rebuilt. Fails with
 * BERTH_ERROR_STALE. */
int berth_context_report(struct berth_pool *pool, struct berth_context context, int number,
                         enum berth_fault *ret_fault, struct berth_error *error);

/* Replaces a lost context by a new one with a new generation. Everything in the old context is
 * gone, and handles to it are stale. The old context is CUDA's primary context, so other users of
 * the device in this process lose theirs as well. Fails with BERTH_ERROR_INVALID (the context is
 * good), _STALE (another thread has rebuilt it: get it from the set), _LOST (the device is given
 * up), _BUSY or _DRIVER. */
int berth_context_rebuild(struct berth_pool *pool, struct berth_context context,
                          struct berth_context *ret_context, struct berth_error *error);

/* Ends one context of a set. Must be called once; a second call fails with BERTH_ERROR_NOT_FOUND.
 * The handle may have the current or any earlier generation. */
int berth_context_release(struct berth_pool *pool, struct berth_context context,
                          struct berth_error *error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
