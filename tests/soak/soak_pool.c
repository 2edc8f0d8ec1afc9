/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads on eight devices for a while, watched: fails when two use one device, when a call
 * answers what it must not, or when nothing moves for too long. TAP on standard output.
 *
 *     soak_pool SECONDS THREADS
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "support/many_claimers.h"

/* So many seconds without a turn of anybody, or until the last thread is back: somebody was
 * forgotten. */
enum { TIMEOUT = 20 };

static struct timespec in_seconds(double seconds)
{
    struct timespec time;
    double nanoseconds;

    clock_gettime(CLOCK_REALTIME, &time);
    nanoseconds = (double)time.tv_nsec + (seconds - (double)(time_t)seconds) * 1e9;
    time.tv_sec += (time_t)seconds + (time_t)(nanoseconds / 1e9);
    time.tv_nsec = (long)nanoseconds % 1000000000;
    return time;
}

/* Whether the thread is back before so many seconds have passed. */
static bool is_back(pthread_t thread, double seconds)
{
    const struct timespec end = in_seconds(seconds);

    return pthread_timedjoin_np(thread, NULL, &end) == 0;
}

/* Looks for so many seconds, every now and then, whether the threads get their turns. Returns false
 * when nobody does for too long, or when a thread is back that has no reason to. */
static bool watch(struct claimers *claimers, pthread_t any, double seconds)
{
    double still = 0;

    while (seconds > 0) {
        unsigned long before = atomic_load(&claimers->turns);
        double step = seconds < 1 ? seconds : 1;

        if (is_back(any, step))
            return false;
        still = atomic_load(&claimers->turns) == before ? still + step : 0;
        if (still > TIMEOUT)
            return false;
        seconds -= step;
    }
    return true;
}

/* Has the threads end. Returns how many did not: they wait for a wake-up that was lost. */
static size_t end(struct claimers *claimers, const pthread_t *threads, size_t count)
{
    struct timespec last = in_seconds(TIMEOUT);
    size_t lost = 0;

    atomic_store(&claimers->ends, true);
    for (size_t i = 0; i < count; i++)
        lost += pthread_timedjoin_np(threads[i], NULL, &last) != 0;
    return lost;
}

/* Ends without tidying up: threads may still be at it. */
static void fail(const char *what, size_t threads)
{
    printf("1..1\nnot ok 1 - %zu threads: %s\n", threads, what);
    fflush(stdout);
    _exit(1);
}

static size_t start(struct claimers *claimers, pthread_t *threads, size_t count)
{
    pthread_attr_t small;
    size_t started = 0;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    while (started < count &&
           pthread_create(&threads[started], &small, claimers_run, claimers) == 0)
        started++;
    pthread_attr_destroy(&small);
    return started;
}

int main(int argc, char **argv)
{
    static struct claimers claimers;
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    pthread_t *threads = calloc(count + 1, sizeof(*threads));
    size_t started;

    if (threads == NULL || !claimers_begin(&claimers)) {
        free(threads);
        puts("1..1\nnot ok 1 - no memory");
        return 1;
    }
    started = start(&claimers, threads, count);
    if (started == 0 || !watch(&claimers, threads[0], seconds))
        fail("nothing moved for too long", started);
    if (end(&claimers, threads, started) > 0)
        fail("some never came back", started);
    claimers_end(&claimers);
    free(threads);
    printf("1..1\n# %lu turns\n%s 1 - %zu threads for %g s, %lu wrong answers\n",
           atomic_load(&claimers.turns), atomic_load(&claimers.wrongs) == 0 ? "ok" : "not ok",
           started, seconds, atomic_load(&claimers.wrongs));
    return atomic_load(&claimers.wrongs) == 0 ? 0 : 1;
}
