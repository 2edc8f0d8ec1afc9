/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock for short sections: taking it costs one locked instruction, releasing it a plain store.
 * A thread that finds it taken spins a little, then sleeps. Zeroed memory is a free lock. It is
 * not fair: a new thread may overtake a sleeping one.
 *
 * Why no wake-up is lost: the releasing thread stores 0 and then checks for sleepers, and the
 * processor may reorder the two. The sleeper counts itself, uses membarrier(2) to put a full
 * barrier into every running thread of the process, and only then reads the word for the last
 * time. If the releasing thread checked before its barrier, its earlier store was visible at the
 * barrier, and the sleeper sees a free lock. If it checked after its barrier, it saw the sleeper
 * counted and wakes it. The sleeper stays counted until it has the lock, so one barrier is enough
 * for all its attempts. Without membarrier no thread sleeps longer than a millisecond.
 *
 * A lock may favour one thread (lock_favour_first): the first one that takes it. As long as no
 * other thread comes, the favoured thread needs no locked instruction: it marks itself as inside
 * and checks whether it is still favoured. Another thread takes the word as usual, marks the favour
 * as ending, uses membarrier to put a barrier into the favoured thread, and waits until that thread
 * is outside. If the favoured thread checked before the barrier, the other thread sees it inside.
 * If it checks after the barrier, it sees that its favour is ending and steps back. From then on no
 * thread is favoured.
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
    atomic_uint favoured; /* the number of a thread, or one of the values above */
    atomic_uint inside;   /* 1: the favoured thread has the lock */
    atomic_uint ending;   /* 1: another thread waits for the favoured thread to leave */
};

/* Prepares all locks of this process. Must be called before two threads use a lock; may be called
 * again. */
void lock_prepare(void);

/* Lets a free lock favour the first thread that takes it, if the system supports that. No other
 * thread may know the lock yet. Call lock_prepare first. */
void lock_favour_first(struct lock *lock);

/* Returns whether the lock seems to be taken. */
static inline bool lock_is_taken(const struct lock *lock)
{
    return atomic_load_explicit(&lock->word, memory_order_relaxed) != 0 ||
           atomic_load_explicit(&lock->inside, memory_order_relaxed) != 0;
}

/* Slow paths; called only by the functions below. */
#define LOCK_COLD __attribute__((noinline, cold))
LOCK_COLD void lock_take_slowly(struct lock *lock);
LOCK_COLD void lock_take_favoured(struct lock *lock);
LOCK_COLD void lock_wake(struct lock *lock);
LOCK_COLD void lock_wake_ending(struct lock *lock);

/* The number of this thread; LOCK_NO_THREAD: none yet. Initial-exec, because every lock reads
 * it. */
extern __thread unsigned lock_thread __attribute__((tls_model("initial-exec")));

/* Marks the favoured thread as outside. */
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
        /* Keep the compiler from reordering; the other thread's barrier takes care of the
         * processor. */
        atomic_signal_fence(memory_order_seq_cst);
        if (__builtin_expect(atomic_load_explicit(&lock->ending, memory_order_acquire) == 0, true))
            return;
        lock_step_out(lock);
    }
    lock_take_favoured(lock);
}

static inline void lock_give(struct lock *lock)
{
    /* The favour does not change while another thread has the lock. */
    if (atomic_load_explicit(&lock->favoured, memory_order_relaxed) == lock_thread) {
        lock_step_out(lock);
        return;
    }
    atomic_store_explicit(&lock->word, 0, memory_order_release);
    /* Keep the compiler from reordering; the sleeper's barrier takes care of the processor. */
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&lock->sleepers, memory_order_relaxed) != 0, false))
        lock_wake(lock);
}

#endif
