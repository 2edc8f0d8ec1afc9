/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads claim eight devices for some time. Fails if two threads use one device, if a call
 * returns a wrong result, or if no thread gets a turn for too long. Prints TAP.
 *
 *     soak_pool SECONDS THREADS
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "support/programs/many_claimers.h"

/* The most seconds without a turn of any thread, and until the last thread ends. After that, a
 * wake-up was lost. */
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

/* Returns whether the thread ends within this many seconds. */
static bool is_back(pthread_t thread, double seconds)
{
    const struct timespec end = in_seconds(seconds);

    return pthread_timedjoin_np(thread, NULL, &end) == 0;
}

/* Checks once a second, for this many seconds, that the threads get their turns. Returns false if
 * no thread does for too long, or if the thread `any` ends. */
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

/* Tells all threads to end. Returns how many did not: they wait for a lost wake-up. */
static size_t end(struct claimers *claimers, const pthread_t *threads, size_t count)
{
    struct timespec last = in_seconds(TIMEOUT);
    size_t lost = 0;

    atomic_store(&claimers->ends, true);
    for (size_t i = 0; i < count; i++)
        lost += pthread_timedjoin_np(threads[i], NULL, &last) != 0;
    return lost;
}

/* Ends without cleaning up, because threads may still be running. */
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
        puts("1..1\nnot ok 1 - out of memory");
        return 1;
    }
    started = start(&claimers, threads, count);
    if (started == 0 || !watch(&claimers, threads[0], seconds))
        fail("no turn for too long", started);
    if (end(&claimers, threads, started) > 0)
        fail("some did not end", started);
    claimers_end(&claimers);
    free(threads);
    printf("1..1\n# %lu turns\n%s 1 - %zu threads for %g s, %lu wrong results\n",
           atomic_load(&claimers.turns), atomic_load(&claimers.wrongs) == 0 ? "ok" : "not ok",
           started, seconds, atomic_load(&claimers.wrongs));
    return atomic_load(&claimers.wrongs) == 0 ? 0 : 1;
}
