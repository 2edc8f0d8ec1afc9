/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that are lost to a device fault: classes, generations, rebuilding.
 */
#include "base/count.h"
#include "support/assert_error.h"
#include "support/hardware/cuda_pool.h"

static enum berth_fault report(struct cuda_pool *world, struct berth_context context, int status)
{
    enum berth_fault fault;

    assert_works(berth_context_report(world->pool, context, status, &fault, &world->error),
                 &world->error);
    return fault;
}

/* Breaks a device as a kernel would, and reports the fault. */
static struct berth_context lose(struct cuda_pool *world, struct berth_context_set set, int unit,
                                 int status)
{
    struct berth_context context = cuda_pool_at(world, set, (size_t)unit);

    world->cuda.fault(unit, status);
    assert_int_equal(report(world, context, status), BERTH_FAULT_REBUILD);
    return context;
}

static struct berth_context rebuild(struct cuda_pool *world, struct berth_context context)
{
    assert_works(berth_context_rebuild(world->pool, context, &context, &world->error),
                 &world->error);
    return context;
}

/* One error of each class; the tests of the driver have all numbers. */
static void a_fault_has_a_class(void **state)
{
    static const struct {
        int status;
        enum berth_fault fault;
    } faults[] = {
        {0, BERTH_FAULT_NONE},      {1, BERTH_FAULT_NONE},      {600, BERTH_FAULT_NONE},
        {2, BERTH_FAULT_RETRY},     {46, BERTH_FAULT_RETRY},    {802, BERTH_FAULT_RETRY},
        {700, BERTH_FAULT_REBUILD}, {719, BERTH_FAULT_REBUILD}, {709, BERTH_FAULT_REBUILD},
        {4, BERTH_FAULT_GIVE_UP},   {803, BERTH_FAULT_GIVE_UP},
    };
    struct cuda_pool *world = *state;

    for (size_t i = 0; i < COUNT(faults); i++) {
        struct berth_context_set set = cuda_pool_set(world);
        struct berth_context context = cuda_pool_at(world, set, 0);
        bool is_lost = faults[i].fault >= BERTH_FAULT_REBUILD;

        assert_int_equal(report(world, context, faults[i].status), faults[i].fault);
        assert_int_equal(cuda_pool_info(world, context).fault,
                         is_lost ? faults[i].fault : BERTH_FAULT_NONE);
        assert_int_equal(cuda_pool_info(world, context).context == NULL, is_lost);
        assert_works(berth_contexts_release(world->pool, set, &world->error), &world->error);
    }
}

static void a_number_that_does_not_tell_has_the_context_tried(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context context = cuda_pool_at(world, set, 1);

    world->cuda.run(1, true); /* a running kernel must not delay the test of the context */
    assert_int_equal(report(world, context, 999), BERTH_FAULT_NONE);
    assert_int_equal(report(world, context, 123456), BERTH_FAULT_NONE);
    assert_int_equal(report(world, context, -1), BERTH_FAULT_NONE);
    world->cuda.fault(1, 700);
    assert_int_equal(report(world, context, 999), BERTH_FAULT_REBUILD);
    /* The test of the context fails, too, and the driver does not know the reason. */
    context = cuda_pool_at(world, set, 2);
    world->cuda.fault(2, 999);
    assert_int_equal(report(world, context, 999), BERTH_FAULT_REBUILD);
}

static void a_lost_context_fails_clearly(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context context = lose(world, set, 1, 700);

    assert_fails(
        berth_context_make_current(world->pool, context, &world->error), BERTH_ERROR_LOST,
        &world->error,
        "the context on nvidia1 is lost: CUDA_ERROR_ILLEGAL_ADDRESS (CUDA 700): it can be rebuilt");
    /* A successful call on another context does not repair it. */
    assert_int_equal(report(world, context, 0), BERTH_FAULT_REBUILD);
    /* The handle is the same: it was not rebuilt. */
    assert_int_equal(cuda_pool_at(world, set, 1).generation, 1);
    assert_int_equal(berth_context_make_current(world->pool, cuda_pool_at(world, set, 0), NULL), 0);
}

static void a_driver_that_fails_is_noticed_without_a_report(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context context = cuda_pool_at(world, set, 2);

    world->cuda.fault(2, 716);
    /* It has the most memory, but the query shows that it is lost. */
    assert_works(berth_contexts_best(world->pool, set, 0, &context, &world->error), &world->error);
    assert_int_equal(context.position, 1);
    assert_int_equal(cuda_pool_info(world, cuda_pool_at(world, set, 2)).fault, BERTH_FAULT_REBUILD);
    world->cuda.refuse("cuCtxSetCurrent", 0, 709, 1);
    assert_int_equal(berth_context_make_current(world->pool, cuda_pool_at(world, set, 0), NULL),
                     BERTH_ERROR_LOST);
    world->cuda.refuse("cuCtxSetCurrent", 1, 2, 1);
    assert_fails(berth_context_make_current(world->pool, context, &world->error), BERTH_ERROR_BUSY,
                 &world->error,
                 "cannot make the context on nvidia1 current: CUDA_ERROR_OUT_OF_MEMORY (CUDA 2)");
    assert_works(berth_context_make_current(world->pool, context, &world->error), &world->error);
}

static void a_rebuilt_context_has_a_new_generation(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context old = lose(world, set, 1, 700);
    struct berth_context fresh = rebuild(world, old);
    struct berth_context_info info = {.size = sizeof(info)};
    enum berth_fault fault;
    char line[128];

    assert_int_equal(fresh.generation, 2);
    assert_int_equal(cuda_pool_at(world, set, 1).generation, 2);
    assert_works(berth_context_make_current(world->pool, fresh, &world->error), &world->error);
    assert_non_null(cuda_pool_info(world, fresh).context);
    assert_int_equal(report(world, fresh, 999), BERTH_FAULT_NONE); /* the new context works */
    assert_fails(berth_context_make_current(world->pool, old, &world->error), BERTH_ERROR_STALE,
                 &world->error,
                 "the context on nvidia1 is stale: it was rebuilt; expected generation 2, got 1");
    assert_int_equal(berth_context_info(world->pool, old, &info, NULL), BERTH_ERROR_STALE);
    assert_int_equal(berth_context_report(world->pool, old, 700, &fault, NULL), BERTH_ERROR_STALE);
    assert_int_equal(berth_context_rebuild(world->pool, old, &old, NULL), BERTH_ERROR_STALE);
    assert_int_equal(world->cuda.counts(1).lives, 2);
    berth_contexts_describe(world->pool, set, line, sizeof(line), NULL);
    assert_string_equal(line,
                        "3 contexts: nvidia0 CUDA, nvidia1 CUDA (generation 2), nvidia2 CUDA");
    /* An old handle can release the context, too. */
    assert_works(berth_context_release(world->pool, old, &world->error), &world->error);
    assert_int_equal(berth_context_release(world->pool, fresh, NULL), BERTH_ERROR_NOT_FOUND);
    assert_works(berth_contexts_release(world->pool, set, &world->error), &world->error);
    assert_all_given_back(world);
}

static void what_was_current_is_stale_after_a_rebuild(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context context = cuda_pool_at(world, set, 0);

    assert_works(berth_context_make_current(world->pool, context, &world->error), &world->error);
    lose(world, set, 0, 719);
    assert_int_equal(berth_context_current(world->pool, &context, NULL), BERTH_ERROR_LOST);
    rebuild(world, context);
    assert_int_equal(berth_context_current(world->pool, &context, NULL), BERTH_ERROR_STALE);
}

static void a_good_context_is_not_rebuilt(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context context = cuda_pool_at(world, cuda_pool_set(world), 0);

    assert_fails(berth_context_rebuild(world->pool, context, &context, &world->error),
                 BERTH_ERROR_INVALID, &world->error,
                 "cannot rebuild the context on nvidia0: it is good");
    assert_int_equal(world->cuda.counts(0).resets, 0);
}

static void what_is_given_up_is_not_rebuilt(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context context = cuda_pool_at(world, set, 0);

    assert_int_equal(report(world, context, 803), BERTH_FAULT_GIVE_UP);
    assert_fails(berth_context_rebuild(world->pool, context, &context, &world->error),
                 BERTH_ERROR_LOST, &world->error,
                 "the context on nvidia0 is lost: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (CUDA 803): "
                 "this process can no longer use the device");
    /* A lesser fault does not improve the state. */
    assert_int_equal(report(world, context, 700), BERTH_FAULT_GIVE_UP);
    assert_works(berth_contexts_release(world->pool, set, &world->error), &world->error);
    assert_all_given_back(world);
}

static void a_rebuild_may_have_to_wait_or_be_in_vain(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context context = lose(world, set, 1, 700);

    world->cuda.refuse("cuDevicePrimaryCtxRetain", 1, 2, 1);
    assert_fails(berth_context_rebuild(world->pool, context, &context, &world->error),
                 BERTH_ERROR_BUSY, &world->error,
                 "cannot rebuild the context on nvidia1: CUDA_ERROR_OUT_OF_MEMORY (CUDA 2)");
    assert_int_equal(cuda_pool_info(world, context).fault, BERTH_FAULT_REBUILD);
    assert_null(cuda_pool_info(world, context).context);
    context = rebuild(world, context);
    assert_int_equal(context.generation, 2);
    world->cuda.fault(1, 700);
    assert_int_equal(report(world, context, 700), BERTH_FAULT_REBUILD);
    world->cuda.refuse("cuDevicePrimaryCtxRetain", 1, 719, 1);
    assert_int_equal(berth_context_rebuild(world->pool, context, &context, &world->error),
                     BERTH_ERROR_LOST);
    assert_int_equal(cuda_pool_info(world, context).fault, BERTH_FAULT_GIVE_UP);
    assert_works(berth_contexts_release(world->pool, set, &world->error), &world->error);
    assert_all_given_back(world);
}

/* Two sets on one device share its primary context: the second rebuild does not destroy the context
 * that the first has made. */
static void two_sets_rebuild_one_device(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set one = cuda_pool_set(world);
    struct berth_context_set other = cuda_pool_set(world);
    struct berth_context first = lose(world, one, 2, 700);
    struct berth_context second = cuda_pool_at(world, other, 2);

    first = rebuild(world, first);
    assert_int_equal(report(world, second, 709), BERTH_FAULT_REBUILD);
    second = rebuild(world, second);
    assert_int_equal(world->cuda.counts(2).resets, 1);
    assert_int_equal(report(world, first, 999), BERTH_FAULT_NONE);
    assert_int_equal(report(world, second, 999), BERTH_FAULT_NONE);
    assert_works(berth_contexts_release(world->pool, one, &world->error), &world->error);
    assert_int_equal(report(world, second, 999), BERTH_FAULT_NONE);
    assert_works(berth_contexts_release(world->pool, other, &world->error), &world->error);
    assert_all_given_back(world);
}

#define faults_test(function) \
    cmocka_unit_test_setup_teardown(function, cuda_pool_enter, cuda_pool_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        faults_test(a_fault_has_a_class),
        faults_test(a_number_that_does_not_tell_has_the_context_tried),
        faults_test(a_lost_context_fails_clearly),
        faults_test(a_driver_that_fails_is_noticed_without_a_report),
        faults_test(a_rebuilt_context_has_a_new_generation),
        faults_test(what_was_current_is_stale_after_a_rebuild),
        faults_test(a_good_context_is_not_rebuilt),
        faults_test(what_is_given_up_is_not_rebuilt),
        faults_test(a_rebuild_may_have_to_wait_or_be_in_vain),
        faults_test(two_sets_rebuild_one_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
