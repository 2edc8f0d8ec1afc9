/* SPDX-License-Identifier: Apache-2.0
 *
 * The state that the functions of the CUDA double share, and how each of them begins and ends.
 */
#ifndef TESTS_CUDA_CALLS_H
#define TESTS_CUDA_CALLS_H

#include "context/cuda.h"
#include "doubles/cuda_double.h"
#include "doubles/cuda_machine.h"

/* Clients know the functions by these names. They have no header with prototypes, because no other
 * code calls them. */
#define EXPORTED __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define STACK_MAX 64

/* A unit's primary context. Its address is the handle. */
struct primary {
    struct cuda_double_counts counts;
    int fault; /* 0: none */
    int ruin;  /* the fault of every future context */
    bool is_running;
};

/* A thread's contexts; the last one is current. */
struct stack {
    unsigned start; /* the start of the driver that they belong to */
    unsigned depth;
    struct primary *items[STACK_MAX];
};

/* A call that has begun and holds the lock. */
struct call {
    bool lies; /* the answer must be impossible */
    int64_t number;
    int grumble; /* the status that it returns after its work; 0: the true one */
};

/* Protected by the lock. */
extern struct machine machine;
extern struct primary primaries[MACHINE_UNITS];
extern bool is_initialised;

/* Begins a call about a unit, or CUDA_DOUBLE_ANY: takes the lock, counts the call, and blocks if it
 * is held. Returns 0, or the status that the function must return. */
int call_begin(struct call *call, const char *name, int unit);
/* The same for functions that may be called before cuInit. */
int call_begin_early(struct call *call, const char *name);
/* The same for functions that work in the current context, *ret_primary. */
int call_begin_current(struct call *call, const char *name, struct primary **ret_primary);
/* Ends the call. Returns the status that the function must return. */
int call_end(const struct call *call, int status);

/* Returns the unit that CUDA shows with this number; -1: none. */
int call_unit(int device);
/* Returns the unit of a handle; -1: none. */
int call_unit_of_context(const void *context);

/* Returns this thread's stack. */
struct stack *call_stack(void);
/* Returns the unit of this thread's current context; -1: none. */
int call_unit_now(void);

#endif
