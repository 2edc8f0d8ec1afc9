/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the benchmarks: the clock, and how a result is computed.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The result is the quickest of this many runs of about this length: short enough that some are not
 * interrupted on a busy machine. */
#define STRETCHES           100
#define STRETCH_NANOSECONDS 1e6

__attribute__((noreturn, format(printf, 1, 2))) static inline void give_up(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static inline int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Makes the compiler assume that this memory is read. */
static inline void use_value(const void *value)
{
    __asm__ volatile("" : : "r"(value) : "memory");
}

/* Returns the nanoseconds per operation; `run` does `count` operations and returns its time. */
static inline double quickest(int64_t (*run)(void *data, uint64_t count), void *data)
{
    uint64_t count = 1000;
    int64_t time;
    while ((time = run(data, count)) < STRETCH_NANOSECONDS / 4)
        count *= 4;
    count = (uint64_t)((double)count * STRETCH_NANOSECONDS / (double)time);
    int64_t best = INT64_MAX;
    for (int i = 0; i < STRETCHES; i++) {
        time = run(data, count);
        best = time < best ? time : best;
    }
    return (double)best / (double)count;
}

#endif
