/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of leases on a real OpenCL: threads claim a part of the CPU, run kernels there and
 * release it.
 */
#include "support/unit.h"

#ifdef HAVE_OPENCL

#include "support/hardware/opencl_adder.h"

#include <berth/context.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/programs/pools.h"
#include "support/temporary_directory.h"

enum { DEVICES = 3, THREADS = 4, ROUNDS = 3 };

struct world {
    struct berth_pool *pool;
    struct berth_error error;
};

static const struct berth_context_options on_the_cpu = {
    .size = sizeof(on_the_cpu),
    .api = BERTH_API_OPENCL,
    .stand_in = true,
};

/* PoCL reads the variable for its kernel cache only once, so all tests share a directory. */
static int enter_all(void **state)
{
    if (temporary_directory_enter(state) < 0)
        return -1;
    return setenv("POCL_CACHE_DIR", *state, 1);
}

static int enter(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    if (world == NULL)
        return -1;
    world->pool = pool_of(DEVICES);
    *state = world;
    return 0;
}

static int leave(void **state)
{
    struct world *world = *state;

    berth_pool_close(world->pool);
    free(world);
    return 0;
}

/* Returns the contexts of a lease. Skips the test without an OpenCL. */
static struct berth_context_set contexts_of(struct world *world, struct berth_lease lease)
{
    struct berth_context_set set = {0};
    int code;

    opencl_need();
    code = berth_contexts_of_lease(world->pool, lease, &on_the_cpu, &set, &world->error);
    if (code == BERTH_ERROR_NOT_FOUND || code == BERTH_ERROR_NO_DEVICE) {
        print_message("skip: %s\n", world->error.message);
        skip();
    }
    assert_works(code, &world->error);
    return set;
}

static struct berth_lease claim(struct world *world)
{
    struct berth_lease lease;

    assert_works(berth_claim(world->pool, NULL, TIMEOUT, &lease, &world->error), &world->error);
    return lease;
}

/* Adds numbers in the context. Returns the number of wrong results, or 1 for any other failure. */
static size_t compute(struct berth_pool *pool, struct berth_context context, int seed)
{
    struct berth_context_info info = {.size = sizeof(info)};
    struct adder adder = {0};
    size_t wrong = 1;

    if (berth_context_info(pool, context, &info, NULL) < 0 || info.context == NULL ||
        berth_context_make_current(pool, context, NULL) < 0)
        return 1;
    if (adder_start(&adder, info.context, info.device) != CL_SUCCESS ||
        adder_run(&adder, seed, &wrong) != CL_SUCCESS)
        wrong = 1;
    adder_finish(&adder);
    return wrong;
}

/* ---- The tests ---- */

static void a_lease_computes(void **state)
{
    struct world *world = *state;
    struct berth_lease lease = claim(world);
    struct berth_context_set set = contexts_of(world, lease);
    struct berth_context_info info = {.size = sizeof(info)};
    struct berth_context context;
    char line[64];

    berth_contexts_describe(world->pool, set, line, sizeof(line), NULL);
    assert_string_equal(line, "1 context: nvidia0 OpenCL on the CPU");
    assert_works(berth_contexts_next(world->pool, set, &context, &world->error), &world->error);
    assert_works(berth_context_info(world->pool, context, &info, &world->error), &world->error);
    assert_true(info.stands_in);
    assert_int_equal(info.api, BERTH_API_OPENCL);
    assert_int_equal(info.cuda_device, -1);
    assert_non_null(info.device);
    assert_true(info.memory_total > 0);
    assert_int_equal(info.memory_free, BERTH_UNKNOWN);
    assert_int_equal(compute(world->pool, context, 7), 0);
    assert_works(berth_release(world->pool, lease, &world->error), &world->error);
    assert_int_equal(berth_context_info(world->pool, context, &info, NULL), BERTH_ERROR_NOT_FOUND);
}

/* If the CPU can be split, two leases never compute on the same part. */
static void leases_have_parts_of_their_own(void **state)
{
    struct world *world = *state;
    struct berth_lease leases[2] = {claim(world), claim(world)};
    struct berth_context_info infos[2] = {{.size = sizeof(infos[0])}, {.size = sizeof(infos[0])}};
    cl_device_id whole = NULL;

    for (size_t i = 0; i < 2; i++) {
        struct berth_context context;

        assert_works(berth_contexts_at(world->pool, contexts_of(world, leases[i]), 0, &context,
                                       &world->error),
                     &world->error);
        assert_works(berth_context_info(world->pool, context, &infos[i], &world->error),
                     &world->error);
    }
    assert_int_equal(
        clGetDeviceInfo(infos[0].device, CL_DEVICE_PARENT_DEVICE, sizeof(whole), &whole, NULL),
        CL_SUCCESS);
    if (whole == NULL) {
        print_message("skip: the CPU has one compute unit\n");
        skip();
    }
    assert_ptr_not_equal(infos[0].device, infos[1].device);
    assert_ptr_not_equal(infos[0].context, infos[1].context);
}

/* Real devices of this machine never get a part of the CPU, and other devices get one only on
 * request. */
static void nothing_stands_in_unasked(void **state)
{
    struct world *world = *state;
    struct berth_lease lease = claim(world);
    const struct berth_context_options options = {.size = sizeof(options), .api = BERTH_API_OPENCL};
    struct berth_context_set set;

    contexts_of(world, lease);
    berth_release(world->pool, lease, NULL);
    lease = claim(world);
    assert_int_equal(berth_contexts_of_lease(world->pool, lease, &options, &set, &world->error),
                     BERTH_ERROR_NOT_FOUND);
    assert_works(berth_release(world->pool, lease, &world->error), &world->error);
}

static void a_rebuilt_context_computes(void **state)
{
    struct world *world = *state;
    struct berth_context_set set = contexts_of(world, claim(world));
    struct berth_context context, fresh;
    enum berth_fault fault;

    assert_works(berth_contexts_at(world->pool, set, 0, &context, &world->error), &world->error);
    assert_works(berth_context_report(world->pool, context, CL_INVALID_WORK_GROUP_SIZE, &fault,
                                      &world->error),
                 &world->error);
    assert_int_equal(fault, BERTH_FAULT_NONE);
    assert_works(
        berth_context_report(world->pool, context, CL_OUT_OF_RESOURCES, &fault, &world->error),
        &world->error);
    assert_int_equal(fault, BERTH_FAULT_NONE); /* the context was tested, and works */
    /* NVIDIA's error for a kernel with an invalid read. */
    assert_works(berth_context_report(world->pool, context, -9999, &fault, &world->error),
                 &world->error);
    assert_int_equal(fault, BERTH_FAULT_REBUILD);
    assert_int_equal(compute(world->pool, context, 1), 1);
    assert_works(berth_context_rebuild(world->pool, context, &fresh, &world->error), &world->error);
    assert_int_equal(fresh.generation, 2);
    assert_int_equal(compute(world->pool, fresh, 5), 0);
    assert_int_equal(berth_context_make_current(world->pool, context, NULL), BERTH_ERROR_STALE);
}

struct crowd {
    struct berth_pool *pool;
    struct berth_context_set set; /* shared by all; id 0: each lease has its own */
    atomic_size_t wrong;
    atomic_uint computed;
};

/* Claims, computes on the device, releases. There are more threads than devices. */
static void *work(void *data)
{
    struct crowd *crowd = data;

    for (int i = 0; i < ROUNDS; i++) {
        struct berth_context_set set = crowd->set;
        struct berth_context context;
        struct berth_lease lease = {0};
        size_t wrong = 1;

        if (crowd->set.id == 0 &&
            (berth_claim(crowd->pool, NULL, TIMEOUT, &lease, NULL) < 0 ||
             berth_contexts_of_lease(crowd->pool, lease, &on_the_cpu, &set, NULL) < 0))
            atomic_fetch_add(&crowd->wrong, 1);
        if (berth_contexts_next(crowd->pool, set, &context, NULL) == 0)
            wrong = compute(crowd->pool, context, 10 * i + 3);
        atomic_fetch_add(&crowd->wrong, wrong);
        atomic_fetch_add(&crowd->computed, wrong == 0);
        if (crowd->set.id == 0 && berth_release(crowd->pool, lease, NULL) < 0)
            atomic_fetch_add(&crowd->wrong, 1);
    }
    return NULL;
}

static void run_crowd(struct crowd *crowd)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, crowd), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&crowd->wrong), 0);
    assert_int_equal(atomic_load(&crowd->computed), THREADS * ROUNDS);
}

static void threads_compute_under_leases_of_their_own(void **state)
{
    struct world *world = *state;
    struct crowd crowd = {.pool = world->pool};
    struct berth_lease lease = claim(world);

    contexts_of(world, lease);
    assert_works(berth_release(world->pool, lease, &world->error), &world->error);
    run_crowd(&crowd);
}

static void threads_share_the_contexts_of_all_devices(void **state)
{
    struct world *world = *state;
    struct crowd crowd = {.pool = world->pool};
    struct berth_lease lease = claim(world);

    contexts_of(world, lease);
    assert_works(berth_contexts_create(world->pool, &on_the_cpu, &crowd.set, &world->error),
                 &world->error);
    run_crowd(&crowd);
    assert_works(berth_contexts_release(world->pool, crowd.set, &world->error), &world->error);
    assert_works(berth_release(world->pool, lease, &world->error), &world->error);
}

#define pocl_test(function) cmocka_unit_test_setup_teardown(function, enter, leave)
#define run_all(tests)      cmocka_run_group_tests(tests, enter_all, temporary_directory_leave)

#else

#define pocl_test(function) cmocka_unit_test(function)
#define run_all(tests)      cmocka_run_group_tests(tests, NULL, NULL)

static void no_opencl(void **state)
{
    (void)state;
    print_message("skip: built without OpenCL\n");
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef HAVE_OPENCL
        pocl_test(a_lease_computes),
        pocl_test(leases_have_parts_of_their_own),
        pocl_test(nothing_stands_in_unasked),
        pocl_test(a_rebuilt_context_computes),
        pocl_test(threads_compute_under_leases_of_their_own),
        pocl_test(threads_share_the_contexts_of_all_devices),
#else
        pocl_test(no_opencl),
#endif
    };

    return run_all(tests);
}
