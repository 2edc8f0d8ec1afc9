/* SPDX-License-Identifier: Apache-2.0
 *
 * What all functions of the CUDA double begin and end with, and what they share.
 */
#ifndef TESTS_CUDA_CALLS_H
#define TESTS_CUDA_CALLS_H

#include "context/cuda.h"
#include "doubles/cuda_double.h"
#include "doubles/cuda_machine.h"

/* Whom a client knows by these; nobody else calls them, so there is no header with prototypes. */
#define EXPORTED __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define STACK_MAX 64

/* A unit's primary context. Its address is the handle. */
struct primary {
    struct cuda_double_counts counts;
    int fault; /* 0: none */
    int ruin;  /* that of every life to come */
    bool is_running;
};

/* A thread's contexts; the last is the current one. */
struct stack {
    unsigned start; /* of the driver that they are of */
    unsigned depth;
    struct primary *items[STACK_MAX];
};

/* A call that has begun, and so holds the lock. */
struct call {
    bool lies; /* the answer shall be one that cannot be */
    int64_t number;
    int grumble; /* what it returns nevertheless; 0: what is true */
};

/* What the lock is for. */
extern struct machine machine;
extern struct primary primaries[MACHINE_UNITS];
extern bool is_initialised;

/* Begins a call about a unit, or CUDA_DOUBLE_ANY: takes the lock, counts the call, waits where it
 * is held. Returns 0, or what the function is to return. */
int call_begin(struct call *call, const char *name, int unit);
/* The same for what may be called before cuInit. */
int call_begin_early(struct call *call, const char *name);
/* The same for what is done in the current context, *ret_primary. */
int call_begin_current(struct call *call, const char *name, struct primary **ret_primary);
/* Ends it. Returns what the function is to return. */
int call_end(const struct call *call, int status);

/* The unit that CUDA shows under this number; -1: none. */
int call_unit(int device);
/* Whose handle it is; -1: nobody's. */
int call_unit_of_context(const void *context);

/* This thread's stack. */
struct stack *call_stack(void);
/* The unit of this thread's current context; -1: it has none. */
int call_unit_now(void);

#endif
