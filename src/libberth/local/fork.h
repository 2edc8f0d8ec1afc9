/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects fork(). A child cannot use its parent's pools: their threads do not exist there, and
 * their locks keep the state that they had at the fork. So every call in a child fails at once.
 */
#ifndef LIBBERTH_LOCAL_FORK_H
#define LIBBERTH_LOCAL_FORK_H

#include <berth/error.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The number of forks by this process and its ancestors since the library was first used. */
extern atomic_uint fork_generation;

static inline bool fork_happened(unsigned generation)
{
    return atomic_load_explicit(&fork_generation, memory_order_relaxed) != generation;
}

/* Starts counting. Fails with BERTH_ERROR_MEMORY. */
int fork_watch(struct berth_error *error);

/* Sets the error of a call in a child. Returns BERTH_ERROR_FORKED. */
int fork_refuse(struct berth_error *error);

#endif
