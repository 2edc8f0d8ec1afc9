/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of CUDA's driver library, libcuda.so.1, for machines without a GPU: primary contexts and
 * what goes with them, as the driver does it. CUDA_DOUBLE names the file that says what machine it
 * is (cuda_machine.h); it is read by cuInit, as CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER are.
 *
 * A primary context is made by the first retain and ends with the last release; a reset ends it,
 * too, but leaves the retains counted, each to be released. Its handle is the same in every life,
 * its flags last for one; what is done in it while it has none gives 709, without a current context
 * 201. The flags of one that lives are changed by cuDevicePrimaryCtxSetFlags_v2 and refused by the
 * first version of that call (708). After a fault every call in it, and retaining it, gives the
 * same error until it ends.
 *
 * Tests reach what follows with cuda_double_open. A unit is a GPU or an instance of one by its
 * place in the file, from 0, in whatever order CUDA shows them; a call is a function's name. All
 * calls may be made from any thread.
 */
#ifndef TESTS_CUDA_DOUBLE_H
#define TESTS_CUDA_DOUBLE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* In place of a unit: all of them, and calls that are about none. */
#define CUDA_DOUBLE_ANY (-1)
/* In place of a number of times. */
#define CUDA_DOUBLE_ALWAYS (-1)

/* What a unit's primary context went through since the last start. */
struct cuda_double_counts {
    unsigned retains; /* that worked, and so below */
    unsigned releases;
    unsigned resets;
    unsigned lives;      /* how often it was made */
    unsigned references; /* retains that are not released */
    unsigned flags;
    bool is_active; /* it lives */
};

/* X(member, what it returns, parameters): the functions, cuda_double_MEMBER in the library. */
#define CUDA_DOUBLE_FUNCTIONS(X)                                                                 \
    /* Begins anew: no context, no thread that has one current, no fault, all counts 0. The file \
     * and the variables are read again: now, when the driver shall be as after cuInit, else by  \
     * the next cuInit. */                                                                       \
    X(restart, void, (bool is_initialised))                                                      \
    /* From now on the call gives this status and does nothing, so many times (0: no more). */   \
    X(refuse, void, (const char *call, int unit, int status, int times))                         \
    /* From now on the call does what it does but gives this status. */                          \
    X(grumble, void, (const char *call, int unit, int status, int times))                        \
    /* From now on the call succeeds with an answer that cannot be: cuDeviceGetCount and         \
     * cuDeviceGet with the number, cuMemGetInfo_v2 with it as free memory, cuGetErrorName       \
     * without a string (0) or with bytes that end nowhere, cuDevicePrimaryCtxRetain with no     \
     * handle, UUIDs of zeros, texts without an end. */                                          \
    X(lie, void, (const char *call, int unit, int64_t number, int times))                        \
    /* What runs in the unit's context fails with this status, and so all that follows. */       \
    X(fault, void, (int unit, int status))                                                       \
    /* The same, and resets do not help; 0: they do again. */                                    \
    X(ruin, void, (int unit, int status))                                                        \
    /* Something runs in the unit's context: cuStreamQuery says 600 while it does. */            \
    X(run, void, (int unit, bool is_running))                                                    \
    X(set_memory, void, (int unit, uint64_t total, uint64_t free_bytes))                         \
    X(counts, struct cuda_double_counts, (int unit))                                             \
    /* How often the function was called since the last start, failures included. */             \
    X(calls, unsigned, (const char *call))                                                       \
    /* How many contexts are on this thread's stack, the current one included. */                \
    X(depth, unsigned, (void))                                                                   \
    /* From now on whoever makes this call waits before it does anything. */                     \
    X(hold, void, (const char *call, int unit))                                                  \
    /* Waits until so many threads wait in a call that is held. */                               \
    X(await, void, (unsigned threads))                                                           \
    /* Lets all go on; nothing is held any more. */                                              \
    X(let_go, void, (void))

struct cuda_double {
#define CUDA_DOUBLE_MEMBER(member, type, parameters) type(*member) parameters;
    CUDA_DOUBLE_FUNCTIONS(CUDA_DOUBLE_MEMBER)
#undef CUDA_DOUBLE_MEMBER
};

/* Fills in the functions of the double in this file, which stays loaded. Returns whether it is one.
 */
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
