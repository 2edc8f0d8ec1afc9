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
 *
 * A lock may favour one thread (lock_favour_first): the first that takes it. As long as no other
 * comes, that one takes it without a locked instruction: it says that it is inside, and looks
 * whether it is still favoured. Who else comes takes the word as usual, says that the favour ends,
 * has membarrier put its barrier into the favoured thread, and waits until that one is not inside.
 * Either the favoured one looked before the barrier, then it is seen inside; or it looks after it,
 * then it sees that the favour has ended and steps back. From then on nobody is favoured.
 */
#ifndef LIBBERTH_LOCAL_LOCK_H
#define LIBBERTH_LOCAL_LOCK_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

#define LOCK_FAVOURS_NOBODY 0U
#define LOCK_FAVOURS_FIRST  1U
#define LOCK_NO_THREAD      UINT_MAX

struct lock {
    atomic_uint word; /* 0: free */
    atomic_uint sleepers;
    atomic_uint favoured; /* the number of a thread, or one of the above */
    atomic_uint inside;   /* 1: the favoured thread has the lock */
    atomic_uint ending;   /* 1: somebody waits for the favoured thread to step out */
};

/* To be called once before the first lock is taken by two threads, in each process. Idempotent. */
void lock_prepare(void);

/* Makes a free lock that nobody knows yet favour the first thread that takes it, where that can be
 * done. After lock_prepare. */
void lock_favour_first(struct lock *lock);

/* Whether somebody has it, as it looks from here. */
static inline bool lock_is_taken(const struct lock *lock)
{
    return atomic_load_explicit(&lock->word, memory_order_relaxed) != 0 ||
           atomic_load_explicit(&lock->inside, memory_order_relaxed) != 0;
}

/* The long ways; not to be called by name. */
#define LOCK_COLD __attribute__((noinline, cold))
LOCK_COLD void lock_take_slowly(struct lock *lock);
LOCK_COLD void lock_take_favoured(struct lock *lock);
LOCK_COLD void lock_wake(struct lock *lock);
LOCK_COLD void lock_wake_ending(struct lock *lock);

/* The number of this thread; LOCK_NO_THREAD: it has none yet. Initial-exec, because it is looked at
 * each time. */
extern __thread unsigned lock_thread __attribute__((tls_model("initial-exec")));

/* The favoured thread is not inside any more. */
static inline void lock_step_out(struct lock *lock)
{
    atomic_store_explicit(&lock->inside, 0, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&lock->ending, memory_order_relaxed) != 0, false))
        lock_wake_ending(lock);
}

/* Takes the lock if it is free, for a thread that is not favoured. */
static inline bool lock_try_word(struct lock *lock)
{
    return atomic_exchange_explicit(&lock->word, 1, memory_order_acquire) == 0;
}

static inline void lock_take(struct lock *lock)
{
    unsigned favoured = atomic_load_explicit(&lock->favoured, memory_order_relaxed);

    if (favoured == LOCK_FAVOURS_NOBODY) {
        if (__builtin_expect(!lock_try_word(lock), false))
            lock_take_slowly(lock);
        return;
    }
    if (__builtin_expect(favoured == lock_thread, true)) {
        atomic_store_explicit(&lock->inside, 1, memory_order_relaxed);
        /* Keeps the compiler from looking first; the processor is the other's concern. */
        atomic_signal_fence(memory_order_seq_cst);
        if (__builtin_expect(atomic_load_explicit(&lock->ending, memory_order_acquire) == 0, true))
            return;
        lock_step_out(lock);
    }
    lock_take_favoured(lock);
}

static inline void lock_give(struct lock *lock)
{
    /* Nobody becomes or ceases to be favoured while another has the lock. */
    if (atomic_load_explicit(&lock->favoured, memory_order_relaxed) == lock_thread) {
        lock_step_out(lock);
        return;
    }
    atomic_store_explicit(&lock->word, 0, memory_order_release);
    /* Keeps the compiler from looking first; the processor is the sleeper's concern. */
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&lock->sleepers, memory_order_relaxed) != 0, false))
        lock_wake(lock);
}

#endif
