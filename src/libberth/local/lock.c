/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "libberth/local/futex.h"

enum {
    SPINS = 200, /* about as long as a few locked sections */
    NAP = 1000000,
};

/* Set by lock_prepare; every thread writes the same value. */
static atomic_bool has_barrier;
static atomic_uint spins;

static long call_membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

void lock_prepare(void)
{
    cpu_set_t usable;
    bool alone = sched_getaffinity(0, sizeof(usable), &usable) == 0 && CPU_COUNT(&usable) == 1;

    /* On one CPU the holder cannot release the lock while another thread spins. */
    atomic_store_explicit(&spins, alone ? 0 : SPINS, memory_order_relaxed);
    atomic_store_explicit(&has_barrier,
                          call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0,
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

static bool spin_for_lock(struct lock *lock)
{
    for (unsigned left = atomic_load_explicit(&spins, memory_order_relaxed); left > 0; left--) {
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 && lock_try_word(lock))
            return true;
        pause_briefly();
    }
    return false;
}

void lock_take_slowly(struct lock *lock)
{
    bool napping;

    if (spin_for_lock(lock))
        return;
    atomic_fetch_add(&lock->sleepers, 1);
    napping = !atomic_load_explicit(&has_barrier, memory_order_relaxed) ||
              call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) < 0;
    while (!lock_try_word(lock))
        futex_sleep(&lock->word, 1, napping ? clock_now() + NAP : FUTEX_FOR_EVER);
    atomic_fetch_sub(&lock->sleepers, 1);
}

void lock_wake(struct lock *lock)
{
    futex_wake(&lock->word, 1);
}

__thread unsigned lock_thread __attribute__((tls_model("initial-exec"))) = LOCK_NO_THREAD;

/* Gives this thread a unique number. Returns false if there are none left. */
static bool number_thread(void)
{
    static atomic_uint last = LOCK_FAVOURS_FIRST;
    unsigned number = atomic_load_explicit(&last, memory_order_relaxed);

    while (lock_thread == LOCK_NO_THREAD && number < LOCK_NO_THREAD - 1) {
        if (atomic_compare_exchange_weak_explicit(&last, &number, number + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            lock_thread = number + 1;
    }
    return lock_thread != LOCK_NO_THREAD;
}

void lock_favour_first(struct lock *lock)
{
    if (atomic_load_explicit(&has_barrier, memory_order_relaxed))
        atomic_store_explicit(&lock->favoured, LOCK_FAVOURS_FIRST, memory_order_relaxed);
}

/* Ends the favour: waits until the favoured thread, which is another one, is outside and sees that
 * it is not favoured any more. Called with the lock's word. */
static void end_favour(struct lock *lock)
{
    atomic_store(&lock->ending, 1);
    /* This cannot fail: it worked when the process registered for it. */
    call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    while (atomic_load_explicit(&lock->inside, memory_order_acquire) != 0)
        futex_sleep(&lock->inside, 1, FUTEX_FOR_EVER);
    atomic_store_explicit(&lock->favoured, LOCK_FAVOURS_NOBODY, memory_order_relaxed);
}

void lock_wake_ending(struct lock *lock)
{
    futex_wake(&lock->inside, 1);
}

/* Makes this thread, the first one, the favoured thread, which is now inside, and releases the
 * word. */
static void begin_favour(struct lock *lock)
{
    if (!number_thread()) {
        atomic_store_explicit(&lock->favoured, LOCK_FAVOURS_NOBODY, memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&lock->inside, 1, memory_order_relaxed);
    atomic_store_explicit(&lock->favoured, lock_thread, memory_order_relaxed);
    atomic_store(&lock->word, 0);
    if (atomic_load(&lock->sleepers) != 0)
        lock_wake(lock);
}

/* Takes a lock that seemed to favour the first thread or another one, or whose favour was
 * ending. */
void lock_take_favoured(struct lock *lock)
{
    unsigned favoured;

    if (!lock_try_word(lock))
        lock_take_slowly(lock);
    /* While this thread has the word, the favour does not change. */
    favoured = atomic_load_explicit(&lock->favoured, memory_order_relaxed);
    if (favoured == LOCK_FAVOURS_FIRST)
        begin_favour(lock);
    else if (favoured != LOCK_FAVOURS_NOBODY)
        end_favour(lock);
}
