/* SPDX-License-Identifier: Apache-2.0
 *
 * futex(2) for the threads of one process: sleep until a word changes.
 */
#ifndef LIBBERTH_LOCAL_FUTEX_H
#define LIBBERTH_LOCAL_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FUTEX_FOR_EVER INT64_MAX

/* Sleeps while the word is `expected`, at most until `deadline` (CLOCK_MONOTONIC nanoseconds).
 * Returns 0 or ETIMEDOUT. It may return 0 without a reason, so check the word again. */
static inline int futex_sleep(atomic_uint *word, unsigned expected, int64_t deadline)
{
    const int64_t second = 1000000000;
    struct timespec until = {.tv_sec = deadline / second, .tv_nsec = deadline % second};
    long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                          deadline == FUTEX_FOR_EVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);

    return result < 0 && errno == ETIMEDOUT ? ETIMEDOUT : 0;
}

/* Wakes up to `count` sleepers. The word's memory may be gone already, if the sleeper saw the
 * change without being woken. A thread that now sleeps at the same address wakes without a reason,
 * which it must expect. */
static inline void futex_wake(atomic_uint *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);
}

static inline void futex_wake_all(atomic_uint *word)
{
    futex_wake(word, INT_MAX);
}

#endif
