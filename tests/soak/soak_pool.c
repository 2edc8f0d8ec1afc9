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

#include "support/hammer.h"

/* Nothing moved for so many seconds: somebody was forgotten. */
enum { PATIENCE = 60 };

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Waits until `*turns` is above `before`, or the end. Returns false when that takes too long. */
static bool watch(struct hammer *hammer, double end)
{
    unsigned long before = atomic_load(&hammer->turns);
    double moved = now();

    while (now() < end) {
        const struct timespec nap = {.tv_nsec = 10000000};
        unsigned long turns;

        nanosleep(&nap, NULL);
        turns = atomic_load(&hammer->turns);
        if (turns != before)
            moved = now();
        before = turns;
        if (now() - moved > PATIENCE)
            return false;
    }
    return true;
}

static size_t start(struct hammer *hammer, pthread_t *threads, size_t count)
{
    pthread_attr_t small;
    size_t started = 0;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    while (started < count && pthread_create(&threads[started], &small, hammer_run, hammer) == 0)
        started++;
    pthread_attr_destroy(&small);
    return started;
}

int main(int argc, char **argv)
{
    static struct hammer hammer;
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    pthread_t *threads = calloc(count + 1, sizeof(*threads));
    size_t started;

    if (threads == NULL || !hammer_begin(&hammer)) {
        free(threads);
        puts("1..1\nnot ok 1 - no memory");
        return 1;
    }
    started = start(&hammer, threads, count);
    if (!watch(&hammer, now() + seconds)) {
        printf("1..1\nnot ok 1 - %zu threads: nothing moved for %d s\n", started, PATIENCE);
        fflush(stdout);
        _exit(1);
    }
    atomic_store(&hammer.ends, true);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    hammer_end(&hammer);
    free(threads);
    printf("1..1\n# %lu turns\n%s 1 - %zu threads for %g s, %lu wrong answers\n",
           atomic_load(&hammer.turns), atomic_load(&hammer.wrongs) == 0 ? "ok" : "not ok", started,
           seconds, atomic_load(&hammer.wrongs));
    return atomic_load(&hammer.wrongs) == 0 ? 0 : 1;
}
