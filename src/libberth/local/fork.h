/* SPDX-License-Identifier: Apache-2.0
 *
 * What a child process finds of its parent's pools: nothing that it could use. Their threads are
 * gone and their locks stay as they were at the moment of fork(), so calls there fail at once.
 */
#ifndef LIBBERTH_LOCAL_FORK_H
#define LIBBERTH_LOCAL_FORK_H

#include <berth/error.h>
#include <stdatomic.h>
#include <stdbool.h>

/* How often this process and its ancestors have forked since the library was first used. */
extern atomic_uint fork_generation;

static inline bool fork_happened(unsigned generation)
{
    return atomic_load_explicit(&fork_generation, memory_order_relaxed) != generation;
}

/* Begins to count. Fails with BERTH_ERROR_MEMORY. */
int fork_watch(struct berth_error *error);

/* Sets the error of a call in the child. Returns BERTH_ERROR_FORKED. */
int fork_refuse(struct berth_error *error);

#endif
