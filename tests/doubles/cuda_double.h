/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of CUDA's driver library, libcuda.so.1, for machines without a GPU. It implements
 * primary contexts as the driver does. CUDA_DOUBLE names the file that describes the machine
 * (cuda_machine.h). cuInit reads this file, CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.
 *
 * The first retain creates a primary context, the last release destroys it. A reset destroys it as
 * well, but the retains stay counted, and each must be released. Its handle never changes; its
 * flags end with it. A call in a destroyed context returns 709, a call without a current context
 * returns 201.
 * cuDevicePrimaryCtxSetFlags_v2 changes the flags of an active context; the first version of that
 * call refuses to (708). After a fault, every call in the context gives the same error until it is
 * destroyed, and so does retaining it.
 *
 * Tests get the functions below with cuda_double_open(). A unit is the position of a GPU or an
 * instance in the file, from 0; CUDA's order does not change it. A call is a function's name. Any
 * thread may call all functions.
 */
#ifndef TESTS_CUDA_DOUBLE_H
#define TESTS_CUDA_DOUBLE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Stands for all units, and for calls that are about no unit. */
#define CUDA_DOUBLE_ANY (-1)
/* Stands for a number of times. */
#define CUDA_DOUBLE_ALWAYS (-1)

/* The counters of a unit's primary context since the last start. */
struct cuda_double_counts {
    unsigned retains; /* successful ones; also below */
    unsigned releases;
    unsigned resets;
    unsigned lives;      /* how often the context was created */
    unsigned references; /* retains that were not released */
    unsigned flags;
    bool is_active; /* it exists */
};

/* X(member, return type, parameters): the functions, cuda_double_MEMBER in the library. */
#define CUDA_DOUBLE_FUNCTIONS(X)                                                                 \
    /* Starts again: no context, no current context in any thread, no fault, all counts 0. Reads \
     * the file and the variables again: now if the driver must be as after cuInit, otherwise in \
     * the next cuInit. */                                                                       \
    X(restart, void, (bool is_initialised))                                                      \
    /* From now on the call does nothing and returns this status, this many times (0: stop). */  \
    X(refuse, void, (const char *call, int unit, int status, int times))                         \
    /* From now on the call does its work but returns this status. */                            \
    X(grumble, void, (const char *call, int unit, int status, int times))                        \
    /* From now on the call succeeds with an impossible answer: cuDeviceGetCount and cuDeviceGet \
     * with the number, cuMemGetInfo_v2 with it as free memory, cuGetErrorName without a string  \
     * (0) or with bytes without an end, cuDevicePrimaryCtxRetain without a handle, UUIDs of     \
     * zeros, texts without an end. */                                                           \
    X(lie, void, (const char *call, int unit, int64_t number, int times))                        \
    /* The work in the unit's context fails with this status, and so do all later calls. */      \
    X(fault, void, (int unit, int status))                                                       \
    /* The same, but new contexts of the unit fail as well, until this is called with 0. */      \
    X(ruin, void, (int unit, int status))                                                        \
    /* Work is running in the unit's context: cuStreamQuery returns 600 meanwhile. */            \
    X(run, void, (int unit, bool is_running))                                                    \
    X(set_memory, void, (int unit, uint64_t total, uint64_t free_bytes))                         \
    X(counts, struct cuda_double_counts, (int unit))                                             \
    /* Returns how often the function was called since the last start, including failures. */    \
    X(calls, unsigned, (const char *call))                                                       \
    /* Returns the number of contexts on this thread's stack, including the current one. */      \
    X(depth, unsigned, (void))                                                                   \
    /* From now on this call blocks before it does anything. */                                  \
    X(hold, void, (const char *call, int unit))                                                  \
    /* Waits until this many threads are blocked in calls. */                                    \
    X(await, void, (unsigned threads))                                                           \
    /* Lets all blocked calls continue; none blocks any more. */                                 \
    X(let_go, void, (void))

struct cuda_double {
#define CUDA_DOUBLE_MEMBER(member, type, parameters) type(*member) parameters;
    CUDA_DOUBLE_FUNCTIONS(CUDA_DOUBLE_MEMBER)
#undef CUDA_DOUBLE_MEMBER
};

/* Fills in the functions of the double in this file, which stays loaded. Returns whether the file
 * is a double. */
static inline bool cuda_double_open(const char *file, struct cuda_double *ret_double)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define CUDA_DOUBLE_SYMBOL(member, type, parameters) \
    {"cuda_double_" #member, offsetof(struct cuda_double, member)},
        CUDA_DOUBLE_FUNCTIONS(CUDA_DOUBLE_SYMBOL)
#undef CUDA_DOUBLE_SYMBOL
    };
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && library != NULL; i++) {
        void *address = dlsym(library, functions[i].name);

        if (address == NULL)
            return false;
        memcpy((char *)ret_double + functions[i].offset, &address, sizeof(address));
    }
    return library != NULL;
}

#endif
