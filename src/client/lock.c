/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/clock.h"
#include "client/futex.h"

enum {
    SPINS = 200, /* a few sections' worth */
    NAP = 1000000,
};

/* Set by lock_prepare; every thread writes the same. */
static atomic_bool has_barrier;
static atomic_uint spins;

static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

void lock_prepare(void)
{
    cpu_set_t usable;
    bool alone = sched_getaffinity(0, sizeof(usable), &usable) == 0 && CPU_COUNT(&usable) == 1;

    /* On one CPU the holder cannot give the lock back while somebody spins. */
    atomic_store_explicit(&spins, alone ? 0 : SPINS, memory_order_relaxed);
    atomic_store_explicit(&has_barrier, membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0,
                          memory_order_relaxed);
}

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool spin(struct lock *lock)
{
    for (unsigned left = atomic_load_explicit(&spins, memory_order_relaxed); left > 0; left--) {
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 && lock_try(lock))
            return true;
        pause_briefly();
    }
    return false;
}

void lock_take_slowly(struct lock *lock)
{
    bool napping;

    if (spin(lock))
        return;
    atomic_fetch_add(&lock->sleepers, 1);
    napping = !atomic_load_explicit(&has_barrier, memory_order_relaxed) ||
              membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) < 0;
    while (!lock_try(lock))
        futex_sleep(&lock->word, 1, napping ? clock_now() + NAP : FUTEX_FOR_EVER);
    atomic_fetch_sub(&lock->sleepers, 1);
}

void lock_wake(struct lock *lock)
{
    futex_wake(&lock->word, 1);
}
