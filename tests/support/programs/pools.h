/* SPDX-License-Identifier: Apache-2.0
 *
 * Small pools for tests, and threads that claim from them.
 */
#ifndef TESTS_POOLS_H
#define TESTS_POOLS_H

#include "support/unit.h"

#include <berth/berth.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define MILLISECOND INT64_C(1000000)
#define SECOND      INT64_C(1000000000)

/* The longest wait for something that must happen. Meson ends a test program after 60 seconds
 * without saying which test it was. */
#define TIMEOUT (30 * SECOND)

static inline int64_t monotonic_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

/* Waits until the condition holds; the test fails when it does not in time. */
#define await(condition)                               \
    do {                                               \
        int64_t await_end = monotonic_now() + TIMEOUT; \
                                                       \
        while (!(condition)) {                         \
            assert_true(monotonic_now() < await_end);  \
            sched_yield();                             \
        }                                              \
    } while (0)

/* Joins a thread and returns its result. The test fails when the thread does not end in time, as
 * when its claim is never granted. */
static inline void *join_thread(pthread_t thread)
{
    struct timespec end;
    void *result = NULL;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += TIMEOUT / SECOND;
    assert_int_equal(pthread_timedjoin_np(thread, &result, &end), 0);
    return result;
}

/* Checks that a call succeeds. Otherwise prints its message. */
#define assert_works(call, error)                    \
    do {                                             \
        int works_code = (call);                     \
                                                     \
        if (works_code < 0)                          \
            print_error("# %s\n", (error)->message); \
        assert_true(works_code >= 0);                \
    } while (0)

static inline struct berth_device synth(enum berth_vendor vendor, uint32_t index)
{
    return (struct berth_device){
        .vendor = vendor, .index = index, .mig = BERTH_NO_MIG, .memory = BERTH_UNKNOWN};
}

/* Opens a pool of `count` NVIDIA devices. The options may be NULL. */
static inline struct berth_pool *pool_with(size_t count, const struct berth_pool_options *options)
{
    enum { LIMIT = 16 };
    static const char *const names[LIMIT] = {"synth-0", "synth-1", "synth-2", "synth-3",
                                             "synth-4", "synth-5", "synth-6", "synth-7"};
    struct berth_device devices[LIMIT];
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_pool *pool = NULL;

    assert_true(count <= LIMIT);
    for (size_t i = 0; i < count; i++) {
        devices[i] = synth(BERTH_NVIDIA, (uint32_t)i);
        devices[i].name = names[i];
    }
    assert_works(berth_pool_open_devices(devices, count, options, &pool, &error), &error);
    return pool;
}

static inline struct berth_pool *pool_of(size_t count)
{
    return pool_with(count, NULL);
}

/* Creates a request with properties: request_of("gpus", "2", "opportunistic", NULL, NULL). A name
 * that is NULL ends the list. */
static inline struct berth_request *request_of(const char *name, ...)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_request *request = NULL;
    va_list rest;

    assert_works(berth_request_create(&request, &error), &error);
    va_start(rest, name);
    for (; name != NULL; name = va_arg(rest, const char *)) {
        const char *value = va_arg(rest, const char *);

        assert_works(berth_request_set(request, name, value, &error), &error);
    }
    va_end(rest);
    return request;
}

/* Claims one device, which must be free. */
static inline struct berth_lease claim_one(struct berth_pool *pool)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease lease = {0};

    assert_works(berth_claim(pool, NULL, 0, &lease, &error), &error);
    return lease;
}

static inline void release(struct berth_pool *pool, struct berth_lease lease)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_works(berth_release(pool, lease, &error), &error);
}

/* Returns the first device of a lease. */
static inline struct berth_lease_device device_of(struct berth_pool *pool, struct berth_lease lease)
{
    struct berth_lease_device device = {0};
    struct berth_error error = BERTH_ERROR_INIT;

    assert_works(berth_lease_devices(pool, lease, &device, 1, &error), &error);
    return device;
}

/* A thread that claims, and its result. It asserts nothing, because cmocka supports one thread. */
struct claimer {
    struct berth_pool *pool;
    const struct berth_request *request;
    int64_t timeout;
    pthread_t thread;
    int code;
    struct berth_lease lease;
    struct berth_error error;
};

static inline void *claimer_run(void *argument)
{
    struct claimer *claimer = argument;

    claimer->code = berth_claim(claimer->pool, claimer->request, claimer->timeout, &claimer->lease,
                                &claimer->error);
    return NULL;
}

/* Starts a thread that claims and waits for ever. */
static inline void claimer_start(struct claimer *claimer, struct berth_pool *pool,
                                 const struct berth_request *request)
{
    *claimer = (struct claimer){.pool = pool, .request = request, .timeout = BERTH_FOR_EVER};
    assert_int_equal(pthread_create(&claimer->thread, NULL, claimer_run, claimer), 0);
}

/* Waits until the claim ends, which must be granted. Returns the lease. */
static inline struct berth_lease claimer_join(struct claimer *claimer)
{
    join_thread(claimer->thread);
    if (claimer->code < 0)
        print_error("# %s\n", claimer->error.message);
    assert_int_equal(claimer->code, 0);
    return claimer->lease;
}

#endif
