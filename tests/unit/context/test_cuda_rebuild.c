/* SPDX-License-Identifier: Apache-2.0
 *
 * Rebuilding CUDA's contexts after a fault, also by several threads.
 */
#include "support/unit.h"

#include <pthread.h>

#include "support/hardware/cuda_driver.h"

static void what_a_fault_broke_is_made_anew(void **state)
{
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    for (unsigned i = 1; i <= 3; i++) {
        fixture.world->cuda.fault(0, 700);
        assert_looks(&fixture, 700, 700);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
        assert_non_null(fixture.context.pointer);
        assert_int_equal(cuda_fixture_counts(&fixture).resets, i);
        assert_int_equal(cuda_fixture_counts(&fixture).references, 1);
        assert_looks(&fixture, 0, 0);
    }
    cuda_fixture_finish(&fixture);
}

/* A reset clears the flags, also those that another library has set. */
static void flags_are_kept(void **state)
{
    struct cuda_fixture fixture;
    struct cuda_functions *functions;

    cuda_fixture_begin(&fixture, state);
    functions = &((struct cuda *)fixture.driver)->functions;
    assert_int_equal(functions->set_flags(fixture.device.number, 0x12), 0);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
    assert_int_equal(cuda_fixture_counts(&fixture).flags, 0x12);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 4), 0);
    assert_int_equal(cuda_fixture_counts(&fixture).flags, 4);
    fixture.world->cuda.refuse("cuDevicePrimaryCtxGetState", 0, 999, 1);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
    cuda_fixture_finish(&fixture);
}

/* A device that a reset does not repair. */
static void what_is_ruined_is_not_made_anew(void **state)
{
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    fixture.world->cuda.ruin(0, 719);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 719);
        assert_null(fixture.context.pointer);
        assert_int_equal(cuda_fixture_counts(&fixture).references, 0);
    }
    fixture.world->cuda.ruin(0, 0);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
    cuda_fixture_finish(&fixture);
}

/* Two sets on one device: the second takes the context that the first has rebuilt, and does not
 * reset it. */
static void two_on_one_device_do_not_reset_each_other(void **state)
{
    struct native_context other;
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 0, &other), 0);
    fixture.world->cuda.fault(0, 719);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
    assert_int_equal(cuda_fixture_counts(&fixture).lives, 2);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &other, 0), 0);
    assert_int_equal(cuda_fixture_counts(&fixture).lives, 2);
    assert_int_equal(cuda_fixture_counts(&fixture).resets, 1);
    assert_int_equal(other.epoch, fixture.context.epoch);
    assert_int_equal(cuda_fixture_counts(&fixture).references, 2);
    /* The next fault affects both again. */
    fixture.world->cuda.fault(0, 719);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &other, 0), 0);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
    assert_int_equal(cuda_fixture_counts(&fixture).resets, 2);
    assert_looks(&fixture, 0, 0);
    assert_int_equal(cuda_driver.destroy(fixture.driver, other), 0);
    cuda_fixture_finish(&fixture);
}

/* The first set's new context is broken before the second set comes. */
static void a_new_one_that_is_broken_is_not_taken_over(void **state)
{
    static const int statuses[] = {700, 999};
    struct native_context other;
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 0, &other), 0);
        fixture.world->cuda.fault(0, 719);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
        fixture.world->cuda.fault(0, statuses[i]);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &other, 0), 0);
        assert_int_equal(cuda_driver.try(fixture.driver, &other), 0);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
        assert_int_equal(cuda_fixture_counts(&fixture).resets, 2 * (i + 1));
        assert_int_equal(cuda_driver.destroy(fixture.driver, other), 0);
    }
    cuda_fixture_finish(&fixture);
}

/* Each call of a rebuild fails in turn: there is no context, every retain is released, and the next
 * attempt works. */
static void making_it_anew_may_fail(void **state)
{
    static const struct {
        const char *call;
        int status;
        int wanted;
    } cases[] = {
        {"cuDevicePrimaryCtxReset_v2", 4, 4},
        {"cuDevicePrimaryCtxReset_v2", 708, 708},
        {"cuDevicePrimaryCtxReset_v2", 999, 999},
        {"cuDevicePrimaryCtxRetain", 2, 2},
        {"cuDevicePrimaryCtxRetain", 46, 46},
        {"cuDevicePrimaryCtxRetain", 700, 700},
        {"cuDevicePrimaryCtxSetFlags_v2", 101, 101},
        {"cuCtxGetCurrent", 4, 4},
        {"cuCtxPushCurrent_v2", 201, 709},
        {"cuStreamQuery", 719, 719},
        {"cuStreamQuery", 999, 999},
    };
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fixture.world->cuda.fault(0, 700);
        fixture.world->cuda.refuse(cases[i].call, CUDA_DOUBLE_ANY, cases[i].status,
                                   CUDA_DOUBLE_ALWAYS);
        for (unsigned attempt = 0; attempt < 2; attempt++) {
            assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 4),
                             cases[i].wanted);
            assert_null(fixture.context.pointer);
            assert_int_equal(cuda_fixture_counts(&fixture).references, 0);
        }
        fixture.world->cuda.refuse(cases[i].call, CUDA_DOUBLE_ANY, 0, 0);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 4), 0);
        assert_int_equal(cuda_fixture_counts(&fixture).references, 1);
        assert_looks(&fixture, 0, 0);
    }
    cuda_fixture_finish(&fixture);
}

/* The reset or the release worked, but returned the fault that it clears. */
static void the_old_fault_does_not_hinder_the_new_context(void **state)
{
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    fixture.world->cuda.fault(0, 700);
    fixture.world->cuda.grumble("cuDevicePrimaryCtxRelease_v2", 0, 700, 1);
    fixture.world->cuda.grumble("cuDevicePrimaryCtxReset_v2", 0, 700, 1);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
    assert_looks(&fixture, 0, 0);
    assert_int_equal(cuda_fixture_counts(&fixture).references, 1);
    cuda_fixture_finish(&fixture);
}

static void a_failed_attempt_is_ended_without_a_call(void **state)
{
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    fixture.world->cuda.refuse("cuDevicePrimaryCtxRetain", 0, 2, 1);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 2);
    cuda_fixture_finish(&fixture);
}

/* ---- Threads ---- */

struct worker {
    const struct cuda_fixture *fixture;
    struct native_context context;
    int status;
};

static void *make_anew(void *argument)
{
    struct worker *worker = argument;

    worker->status = cuda_driver.rebuild(worker->fixture->driver, &worker->context, 0);
    return NULL;
}

static void two_threads_make_one_context_anew(void **state)
{
    struct cuda_fixture fixture;
    struct worker workers[2];
    pthread_t threads[2];

    cuda_fixture_begin(&fixture, state);
    for (size_t i = 0; i < 2; i++) {
        workers[i] = (struct worker){.fixture = &fixture};
        assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 0, &workers[i].context),
                         0);
    }
    fixture.world->cuda.fault(0, 700);
    /* The first thread is in the middle of a reset when the second begins. */
    fixture.world->cuda.hold("cuDevicePrimaryCtxReset_v2", 0);
    assert_int_equal(pthread_create(&threads[0], NULL, make_anew, &workers[0]), 0);
    fixture.world->cuda.await(1);
    assert_int_equal(pthread_create(&threads[1], NULL, make_anew, &workers[1]), 0);
    /* Another device is not blocked. */
    {
        struct native_context other;

        assert_int_equal(
            cuda_driver.create(fixture.driver, cuda_driver_device(fixture.driver, 1), 0, &other),
            0);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &other, 0), 0);
        assert_int_equal(cuda_driver.destroy(fixture.driver, other), 0);
    }
    fixture.world->cuda.let_go();
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].status, 0);
        assert_int_equal(cuda_driver.try(fixture.driver, &workers[i].context), 0);
        assert_int_equal(cuda_driver.destroy(fixture.driver, workers[i].context), 0);
    }
    assert_int_equal(cuda_fixture_counts(&fixture).resets, 1);
    cuda_fixture_finish(&fixture);
}

/* A thread that creates, uses and releases contexts, and rebuilds those that another thread breaks.
 */
static void *live(void *argument)
{
    struct worker *worker = argument;
    const struct cuda_fixture *fixture = worker->fixture;

    for (unsigned i = 0; i < 500; i++) {
        struct native_context context = {0};
        struct driver_memory memory;

        /* Other threads break the device at any time. */
        int status = cuda_driver.create(fixture->driver, fixture->device, 0, &context);

        context.device = fixture->device;
        if (status != 0 && status != 700)
            worker->status++;
        if (i % 7 == 0)
            fixture->world->cuda.fault(0, 700);
        if (cuda_driver.memory(fixture->driver, &context, &memory) != 0 &&
            cuda_driver.classify(cuda_driver.try(fixture->driver, &context)) == DRIVER_REBUILD) {
            status = cuda_driver.rebuild(fixture->driver, &context, 0);
            if (status != 0 && cuda_driver.classify(status) != DRIVER_REBUILD)
                worker->status++;
        }
        if (fixture->world->cuda.depth() != 0)
            worker->status++;
        if (cuda_driver.destroy(fixture->driver, context) != 0)
            worker->status++;
    }
    return NULL;
}

static void many_threads_leave_nothing_behind(void **state)
{
    struct cuda_fixture fixture;
    struct worker workers[4];
    pthread_t threads[4];

    cuda_fixture_begin(&fixture, state);
    for (size_t i = 0; i < 4; i++) {
        workers[i] = (struct worker){.fixture = &fixture};
        assert_int_equal(pthread_create(&threads[i], NULL, live, &workers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].status, 0);
    }
    assert_int_equal(cuda_fixture_counts(&fixture).references, 1);
    assert_true(cuda_fixture_counts(&fixture).resets > 0);
    cuda_fixture_finish(&fixture);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, cuda_world_enter, cuda_world_leave)
    const struct CMUnitTest tests[] = {
        TEST(what_a_fault_broke_is_made_anew),
        TEST(flags_are_kept),
        TEST(what_is_ruined_is_not_made_anew),
        TEST(two_on_one_device_do_not_reset_each_other),
        TEST(a_new_one_that_is_broken_is_not_taken_over),
        TEST(making_it_anew_may_fail),
        TEST(the_old_fault_does_not_hinder_the_new_context),
        TEST(a_failed_attempt_is_ended_without_a_call),
        TEST(two_threads_make_one_context_anew),
        TEST(many_threads_leave_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
