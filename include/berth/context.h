/* SPDX-License-Identifier: Apache-2.0
 *
 * berth/context.h: a lease as contexts that are ready to compute in.
 *
 *     struct berth_context_set set;
 *     struct berth_context context;
 *     struct berth_context_info info = {.size = sizeof(info)};
 *
 *     berth_contexts_of_lease(pool, lease, NULL, &set, &error);
 *     berth_contexts_next(pool, set, &context, &error);
 *     berth_context_make_current(pool, context, &error);
 *     berth_context_info(pool, context, &info, &error);
 *     ... info.context is a CUcontext or a cl_context, info.device what goes with it ...
 *     berth_release(pool, lease, &error);    ends the contexts, then gives the devices back
 *
 * A set has one context for each of its devices, at positions from 0 on. It belongs to a lease and
 * ends with it, or to the program, which releases it. Devices are found by their UUID or PCI
 * address, whatever order their driver counts them in, so a set never computes on somebody else's.
 *
 * Vendors' libraries are loaded while running: libcuda.so.1, libOpenCL.so.1, or what BERTH_CUDA and
 * BERTH_OPENCL name; with BERTH_SYSROOT only what these name. They stay loaded. They run in the
 * calling thread, so every call here takes as long as the driver does. Calls may be made from any
 * thread; on one context they go one after another, on several side by side. Handles are values:
 * one that is released, of another pool or of an earlier context is refused, never followed.
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
    BERTH_API_ANY = 0, /* CUDA for NVIDIA devices where its driver is installed, OpenCL else */
    BERTH_API_CUDA = 1,
    BERTH_API_OPENCL = 2,
};

/* How a thread waits for the device, and more: the driver's own numbers (CU_CTX_...). */
enum berth_cuda_flags {
    BERTH_CUDA_SCHED_AUTO = 0x00,
    BERTH_CUDA_SCHED_SPIN = 0x01,
    BERTH_CUDA_SCHED_YIELD = 0x02,
    BERTH_CUDA_SCHED_BLOCKING_SYNC = 0x04,
    BERTH_CUDA_MAP_HOST = 0x08,
    BERTH_CUDA_LMEM_RESIZE_TO_MAX = 0x10,
};

struct berth_context_options {
    size_t size; /* sizeof(struct berth_context_options): which members the caller knows */
    enum berth_api api;
    /* Of CUDA's primary contexts, which the program's other libraries share. 0: as they are. They
     * all have MAP_HOST. */
    unsigned cuda_flags;
    /* Devices of an inventory or of the program that are not in this machine get equal parts of an
     * OpenCL device that is a CPU, for trying things out. Never those of the hardware. */
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
    uint32_t generation; /* 1 at first; one more each time that it is rebuilt */
};

/* Making a set is all or nothing. `options` may be NULL. It may fail with
 *   BERTH_ERROR_INVALID    no slots, a slot twice, flags that are none, another value of options
 *   BERTH_ERROR_NO_DEVICE  the pool is empty; or the driver says that it has none
 *   BERTH_ERROR_NOT_FOUND  no driver is installed for a device, or the driver does not show it
 *   BERTH_ERROR_BUSY       the driver cannot make one now, but may later (memory, another process)
 *   BERTH_ERROR_DRIVER     the driver failed; BERTH_ERROR_MEMORY, BERTH_ERROR_FORKED */

/* For all devices of the pool, in slot order; for those of the slots, in this order (further:
 * BERTH_ERROR_RANGE). The program is to see to it that it has leases on what it computes on. */
int berth_contexts_create(struct berth_pool *pool, const struct berth_context_options *options,
                          struct berth_context_set *ret_set, struct berth_error *error);
int berth_contexts_create_on(struct berth_pool *pool, const size_t *slots, size_t count,
                             const struct berth_context_options *options,
                             struct berth_context_set *ret_set, struct berth_error *error);

/* For the devices of a lease, in its order. A lease has one set: who asks again gets the same, with
 * whatever options it was made. It ends with the lease: berth_release first ends the contexts, then
 * gives the devices on. Further: BERTH_ERROR_NOT_FOUND, the lease is not held. */
int berth_contexts_of_lease(struct berth_pool *pool, struct berth_lease lease,
                            const struct berth_context_options *options,
                            struct berth_context_set *ret_set, struct berth_error *error);

/* All calls below fail with BERTH_ERROR_NOT_FOUND where the set is released, or the context is, and
 * with BERTH_ERROR_FORKED. */

/* Ends a set: waits for calls on it in other threads, releases what is left of it. Exactly once:
 * for a second time it is not found. berth_pool_close does the same for all sets. */
int berth_contexts_release(struct berth_pool *pool, struct berth_context_set set,
                           struct berth_error *error);

/* How many contexts the set was made with. */
int berth_contexts_count(struct berth_pool *pool, struct berth_context_set set,
                         struct berth_error *error);

/* The context at a position, 0 to count-1. Fails with BERTH_ERROR_RANGE beyond. */
int berth_contexts_at(struct berth_pool *pool, struct berth_context_set set, size_t position,
                      struct berth_context *ret_context, struct berth_error *error);

/* The context on a device, by its id such as "nvidia0". Fails with BERTH_ERROR_SYNTAX (that is no
 * id), _NOT_FOUND (no such device in the set). */
int berth_contexts_find(struct berth_pool *pool, struct berth_context_set set, const char *id,
                        struct berth_context *ret_context, struct berth_error *error);

/* Fills in up to `capacity` contexts, in order, without those that are released, and returns how
 * many there are. */
int berth_contexts_list(struct berth_pool *pool, struct berth_context_set set,
                        struct berth_context *ret_contexts, size_t capacity,
                        struct berth_error *error);

/* The next in turn of those that are good, on devices that are there and not sick: over any number
 * of calls, from any threads, each has the same share. Fails with BERTH_ERROR_LOST: none is good.
 */
int berth_contexts_next(struct berth_pool *pool, struct berth_context_set set,
                        struct berth_context *ret_context, struct berth_error *error);

/* The one with the most free memory, asked now, of those as above; the first of equals. `bytes` is
 * what the caller is about to allocate: it counts as taken until the device's figure changes, so
 * that threads which choose at one time do not choose the same. Fails with BERTH_ERROR_LOST, _BUSY
 * (none has so much), _IMPOSSIBLE (of none it is known: unknown is never compared). */
int berth_contexts_best(struct berth_pool *pool, struct berth_context_set set, uint64_t bytes,
                        struct berth_context *ret_context, struct berth_error *error);

/* Writes one line for people, as snprintf does: at most `size` bytes with the zero at the end;
 * returns the length of the whole. "2 contexts: nvidia0 CUDA, nvidia1 CUDA (lost)". */
int berth_contexts_describe(struct berth_pool *pool, struct berth_context_set set, char *buffer,
                            size_t size, struct berth_error *error);

/* ---- Contexts ---- */

/* What a failure of a context means. */
enum berth_fault {
    BERTH_FAULT_NONE = 0,    /* the context is good: the call was wrong, or nothing is */
    BERTH_FAULT_RETRY = 1,   /* the context is good; the same may work later, or with less */
    BERTH_FAULT_REBUILD = 2, /* the context is lost with all that is in it; a new one may work */
    BERTH_FAULT_GIVE_UP = 3, /* the device is of no use to this process any more */
};

struct berth_context_info {
    size_t size; /* sizeof(struct berth_context_info), set by the caller: the members it knows */
    enum berth_api api;
    size_t slot;
    enum berth_vendor vendor;
    uint32_t index;
    uint32_t mig;
    void *context;          /* CUcontext or cl_context; NULL: lost */
    void *device;           /* cl_device_id; NULL for CUDA */
    int cuda_device;        /* CUdevice; -1 for OpenCL */
    enum berth_fault fault; /* REBUILD or GIVE_UP: it is lost */
    bool stands_in;         /* a part of a CPU in place of the device */
    int64_t memory_free;    /* bytes, asked now or, where the driver does not tell, as the pool */
    int64_t memory_total;   /* has sampled it; or BERTH_UNKNOWN */
};

/* What there is to know of a context, lost ones included. The pointers are the program's to use
 * until the context is released or rebuilt, and never to destroy. Fails further with
 * BERTH_ERROR_STALE, _INVALID (`size`). */
int berth_context_info(struct berth_pool *pool, struct berth_context context,
                       struct berth_context_info *ret_info, struct berth_error *error);

/* Makes it the one that this thread computes in: CUDA's current context. OpenCL has no such thing,
 * so it is only remembered. Fails with BERTH_ERROR_LOST (the message says of which class),
 * _STALE, _BUSY, _DRIVER. */
int berth_context_make_current(struct berth_pool *pool, struct berth_context context,
                               struct berth_error *error);

/* The one that this thread made current last, if it still is; fails with BERTH_ERROR_NOT_FOUND (it
 * made none current here, or that was released), _STALE, _LOST. */
int berth_context_current(struct berth_pool *pool, struct berth_context *ret_context,
                          struct berth_error *error);

/* Tells what the driver answered to a call of the program's own in this context (a CUresult or an
 * OpenCL error code) and says of which class that is. Where the number alone does not tell, the
 * context is tried. What is lost stays so until it is rebuilt. Fails with BERTH_ERROR_STALE. */
int berth_context_report(struct berth_pool *pool, struct berth_context context, int number,
                         enum berth_fault *ret_fault, struct berth_error *error);

/* Makes a context anew in place of a lost one, with a new generation; what was made in the old one
 * is gone, and handles of it are stale. The old context is CUDA's primary one: others in this
 * process that use the device find theirs gone, too. Fails with BERTH_ERROR_INVALID (it is good),
 * _STALE (somebody rebuilt it already: ask the set for it), _LOST (the device is given up), _BUSY,
 * _DRIVER. */
int berth_context_rebuild(struct berth_pool *pool, struct berth_context context,
                          struct berth_context *ret_context, struct berth_error *error);

/* Ends one context of a set, exactly once; for a second time it is not found. The handle may be of
 * any generation but a later one. */
int berth_context_release(struct berth_pool *pool, struct berth_context context,
                          struct berth_error *error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
