/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/fork.h"

#include <pthread.h>

#include "base/error.h"

atomic_uint fork_generation;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int failure;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&fork_generation, 1, memory_order_relaxed);
}

static void register_fork_handler(void)
{
    failure = pthread_atfork(NULL, NULL, count_fork);
}

int fork_watch(struct berth_error *error)
{
    pthread_once(&once, register_fork_handler);
    return failure == 0 ? 0 : error_set_memory(error);
}

int fork_refuse(struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_FORKED,
                     "expected a pool of this process, got one that was opened before fork()");
}
