/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of three NVIDIA GPUs, which the CUDA double shows in another order.
 */
#ifndef TESTS_CUDA_POOL_H
#define TESTS_CUDA_POOL_H

#include "support/unit.h"

#include <berth/context.h>

#include "support/hardware/cuda_world.h"
#include "support/programs/pools.h"

#define GIBIBYTE (UINT64_C(1) << 30)

enum { CUDA_POOL_SLOTS = 3 };

/* By slot, which is also the number of the double's unit. */
static const char *const cuda_pool_uuids[CUDA_POOL_SLOTS] = {
    "GPU-00000000-0000-4000-8000-00000000000a",
    "GPU-00000000-0000-4000-8000-00000000000b",
    "GPU-00000000-0000-4000-8000-00000000000c",
};

struct cuda_pool {
    struct cuda_world *world;
    struct cuda_double cuda;
    struct berth_pool *pool;
    struct berth_error error;
};

/* Describes the machine to the double. CUDA shows the fastest GPU first, which is the last one
 * here.
 */
static inline void cuda_pool_say_machine(void)
{
    struct text machine = {0};

    for (int i = 0; i < CUDA_POOL_SLOTS; i++)
        text_append_format(&machine,
                           "gpu\n uuid %s\n pci 0000:0%d:00.0\n memory %llu %llu\n speed %d\n",
                           cuda_pool_uuids[i], i + 1, (unsigned long long)(16 * GIBIBYTE),
                           (unsigned long long)((8 + (uint64_t)i) * GIBIBYTE), i + 1);
    cuda_world_says(text_string(&machine));
    text_finish(&machine);
}

static inline void cuda_pool_open(struct cuda_pool *pool)
{
    struct berth_device devices[CUDA_POOL_SLOTS];

    for (uint32_t i = 0; i < CUDA_POOL_SLOTS; i++) {
        devices[i] = synth(BERTH_NVIDIA, i);
        devices[i].uuid = cuda_pool_uuids[i];
    }
    assert_works(berth_pool_open_devices(devices, CUDA_POOL_SLOTS, NULL, &pool->pool, &pool->error),
                 &pool->error);
}

/* A setup function for cmocka; the state is the struct. */
static inline int cuda_pool_enter(void **state)
{
    struct cuda_pool *pool = calloc(1, sizeof(*pool));
    void *world;

    assert_non_null(pool);
    if (cuda_world_enter(&world) < 0)
        return -1;
    pool->world = world;
    /* Without OpenCL, only CUDA can serve a device. */
    setenv("BERTH_OPENCL", "/nowhere/libOpenCL.so.1", 1);
    cuda_pool_say_machine();
    cuda_world_load(pool->world);
    pool->cuda = pool->world->cuda;
    /* The driver stays started from one test to the next. */
    pool->cuda.restart(true);
    cuda_pool_open(pool);
    *state = pool;
    return 0;
}

static inline int cuda_pool_leave(void **state)
{
    struct cuda_pool *pool = *state;
    void *world = pool->world;

    berth_pool_close(pool->pool);
    unsetenv("BERTH_OPENCL");
    free(pool);
    return cuda_world_leave(&world);
}

/* Returns a context set of all devices. */
static inline struct berth_context_set cuda_pool_set(struct cuda_pool *world)
{
    struct berth_context_set set;

    assert_works(berth_contexts_create(world->pool, NULL, &set, &world->error), &world->error);
    return set;
}

static inline struct berth_context cuda_pool_at(struct cuda_pool *world,
                                                struct berth_context_set set, size_t position)
{
    struct berth_context context;

    assert_works(berth_contexts_at(world->pool, set, position, &context, &world->error),
                 &world->error);
    return context;
}

static inline struct berth_context_info cuda_pool_info(struct cuda_pool *world,
                                                       struct berth_context context)
{
    struct berth_context_info info = {.size = sizeof(info)};

    assert_works(berth_context_info(world->pool, context, &info, &world->error), &world->error);
    return info;
}

/* Checks that no context of the double is left, and that each retain was released. */
static inline void assert_all_given_back(struct cuda_pool *world)
{
    for (int unit = 0; unit < CUDA_POOL_SLOTS; unit++) {
        struct cuda_double_counts counts = world->cuda.counts(unit);

        assert_false(counts.is_active);
        assert_int_equal(counts.references, 0);
        assert_int_equal(counts.retains, counts.releases);
    }
}

#endif
