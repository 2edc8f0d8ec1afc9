/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock for short sections: one locked instruction to take it, a plain store to give it back. Who
 * does not get it spins a little, then sleeps. Zeroed memory is a free lock. Not fair: who comes
 * may overtake who sleeps.
 *
 * Why no wake-up is lost. The giver stores 0 and then looks for sleepers; nothing keeps the
 * processor from looking first. The sleeper counts itself, has membarrier(2) put a full barrier
 * into every running thread of the process, and only then looks at the word for the last time. If
 * the giver looked before its barrier, its store, earlier in its program, was out at the barrier,
 * and the sleeper sees a free lock. If it looked after its barrier, it saw the sleeper counted, and
 * wakes it. The sleeper stays counted until it has the lock, so one barrier does for all its
 * rounds. Where membarrier is not to be had, nobody sleeps longer than a millisecond.
 */
#ifndef CLIENT_LOCK_H
#define CLIENT_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

struct lock {
    atomic_uint word; /* 0: free */
    atomic_uint sleepers;
};

/* To be called once before the first lock is taken by two threads, in each process. Idempotent. */
void lock_prepare(void);

/* The long ways. */
void lock_take_slowly(struct lock *lock);
void lock_wake(struct lock *lock);

static inline bool lock_try(struct lock *lock)
{
    return atomic_exchange_explicit(&lock->word, 1, memory_order_acquire) == 0;
}

static inline void lock_take(struct lock *lock)
{
    if (__builtin_expect(!lock_try(lock), false))
        lock_take_slowly(lock);
}

static inline void lock_give(struct lock *lock)
{
    atomic_store_explicit(&lock->word, 0, memory_order_release);
    /* Keeps the compiler from looking first; the processor is the sleeper's concern. */
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&lock->sleepers, memory_order_relaxed) != 0, false))
        lock_wake(lock);
}

#endif
