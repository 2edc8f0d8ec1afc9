/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's contexts behind their table: created, used and released.
 */
#include "support/unit.h"

#include "support/hardware/cuda_driver.h"

static void a_context_is_made_and_ended(void **state)
{
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    assert_non_null(fixture.context.pointer);
    assert_int_equal(fixture.context.device.number, fixture.device.number);
    assert_int_equal(cuda_fixture_counts(&fixture).retains, 1);
    assert_true(cuda_fixture_counts(&fixture).is_active);
    assert_int_equal(fixture.world->cuda.counts(1).retains, 0);
    assert_null(cuda_fixture_current(&fixture)); /* create() does not make a context current */
    assert_int_equal(cuda_driver.try(fixture.driver, &fixture.context), 0);
    cuda_fixture_finish(&fixture);
    assert_false(cuda_fixture_counts(&fixture).is_active);
    assert_int_equal(cuda_fixture_counts(&fixture).resets, 0);
}

static void making_one_may_fail(void **state)
{
    static const int statuses[] = {2, 46, 100, 101, 201, 304, 700, 802, 805, 999, -1};
    struct native_context context = {.epoch = 77};
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        fixture.world->cuda.refuse("cuDevicePrimaryCtxRetain", 0, statuses[i], 1);
        assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 0, &context),
                         statuses[i]);
    }
    /* A retain that succeeds without a context is released again. */
    fixture.world->cuda.lie("cuDevicePrimaryCtxRetain", 0, 0, 1);
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 0, &context),
                     CUDA_ERROR_UNKNOWN);
    assert_null(context.pointer);
    assert_int_equal(context.epoch, 77); /* untouched */
    assert_int_equal(cuda_fixture_counts(&fixture).references, 1);
    cuda_fixture_finish(&fixture);
}

static void flags_are_set_before(void **state)
{
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    assert_int_equal(fixture.world->cuda.calls("cuDevicePrimaryCtxSetFlags_v2"), 0);
    assert_int_equal(cuda_driver.destroy(fixture.driver, fixture.context), 0);
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device,
                                        BERTH_CUDA_SCHED_BLOCKING_SYNC, &fixture.context),
                     0);
    assert_int_equal(cuda_fixture_counts(&fixture).flags, BERTH_CUDA_SCHED_BLOCKING_SYNC);
    assert_int_equal(cuda_driver.destroy(fixture.driver, fixture.context), 0);
    /* All contexts have this flag. It is not set, because the driver would refuse it. */
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device,
                                        BERTH_CUDA_MAP_HOST | BERTH_CUDA_LMEM_RESIZE_TO_MAX,
                                        &fixture.context),
                     0);
    assert_int_equal(cuda_fixture_counts(&fixture).flags, BERTH_CUDA_LMEM_RESIZE_TO_MAX);
    assert_int_equal(cuda_driver.destroy(fixture.driver, fixture.context), 0);
    assert_int_equal(
        cuda_driver.create(fixture.driver, fixture.device, BERTH_CUDA_MAP_HOST, &fixture.context),
        0);
    assert_int_equal(fixture.world->cuda.calls("cuDevicePrimaryCtxSetFlags_v2"), 2);
    cuda_fixture_finish(&fixture);
}

static void flags_that_cannot_be_set_are_refused(void **state)
{
    struct native_context other = {0};
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    fixture.world->cuda.refuse("cuDevicePrimaryCtxSetFlags_v2", 0, 1, 1);
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 4, &other), 1);
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 3, &other), 1);
    assert_null(other.pointer);
    assert_int_equal(cuda_fixture_counts(&fixture).retains, 1);
    cuda_fixture_finish(&fixture);
}

static void older_drivers_keep_the_flags_of_what_lives(void **state)
{
    static const struct {
        unsigned has;
        unsigned wants;
        int status;
    } cases[] = {
        {0x04, 0x04, 0}, {0x04, 0x01, 708}, {0x04, 0x0c, 0},   {0x0c, 0x04, 0}, {0x04, 0x14, 708},
        {0x14, 0x14, 0}, {0x14, 0x04, 0},   {0x10, 0x01, 708}, {0x10, 0x10, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct native_context other = {0};
        struct cuda_fixture fixture;

        cuda_world_load(*state);
        cuda_world_lacks(*state, CUDA_WORLD_BEFORE_9_2);
        cuda_fixture_begin(&fixture, state);
        assert_int_equal(cuda_driver.destroy(fixture.driver, fixture.context), 0);
        assert_int_equal(
            cuda_driver.create(fixture.driver, fixture.device, cases[i].has, &fixture.context), 0);
        assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, cases[i].wants, &other),
                         cases[i].status);
        /* A state that cannot be queried does not count as equal. */
        fixture.world->cuda.refuse("cuDevicePrimaryCtxGetState", 0, 999, 1);
        if (cases[i].status == 0)
            assert_int_equal(cuda_driver.destroy(fixture.driver, other), 0);
        assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, cases[i].wants, &other),
                         708);
        cuda_fixture_finish(&fixture);
    }
}

static void an_older_driver_does_all_of_it(void **state)
{
    struct cuda_fixture fixture;

    cuda_world_lacks(*state, CUDA_WORLD_BEFORE_9_2);
    cuda_fixture_begin(&fixture, state);
    fixture.world->cuda.fault(0, 700);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 4), 0);
    assert_int_equal(cuda_driver.try(fixture.driver, &fixture.context), 0);
    assert_int_equal(cuda_fixture_counts(&fixture).resets, 1);
    cuda_fixture_finish(&fixture);
}

static void none_is_ended_without_a_call(void **state)
{
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    assert_int_equal(cuda_driver.destroy(fixture.driver, (struct native_context){0}), 0);
    assert_int_equal(fixture.world->cuda.calls("cuDevicePrimaryCtxRelease_v2"), 0);
    fixture.world->cuda.refuse("cuDevicePrimaryCtxRelease_v2", 0, 999, 1);
    assert_int_equal(cuda_driver.destroy(fixture.driver, fixture.context), 999);
    cuda_fixture_finish(&fixture);
}

static void a_context_is_made_current(void **state)
{
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    assert_int_equal(cuda_driver.make_current(fixture.driver, &fixture.context), 0);
    assert_ptr_equal(cuda_fixture_current(&fixture), fixture.context.pointer);
    fixture.world->cuda.refuse("cuCtxSetCurrent", CUDA_DOUBLE_ANY, 4, 1);
    assert_int_equal(cuda_driver.make_current(fixture.driver, &(struct native_context){0}), 4);
    assert_int_equal(cuda_driver.make_current(fixture.driver, &(struct native_context){0}), 0);
    assert_null(cuda_fixture_current(&fixture));
    cuda_fixture_finish(&fixture);
}

/* ---- Using a context ---- */

static void memory_is_asked_of_the_right_device(void **state)
{
    struct driver_memory memory;
    struct native_context other;
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    assert_int_equal(
        cuda_driver.create(fixture.driver, cuda_driver_device(fixture.driver, 1), 0, &other), 0);
    assert_int_equal(cuda_driver.make_current(fixture.driver, &other), 0);
    assert_int_equal(cuda_driver.memory(fixture.driver, &fixture.context, &memory), 0);
    assert_true(memory.free.known && memory.total.known);
    assert_int_equal(memory.free.value, 15000000000);
    assert_int_equal(memory.total.value, 16000000000);
    fixture.world->cuda.set_memory(0, 16000000000, 0);
    assert_int_equal(cuda_driver.memory(fixture.driver, &fixture.context, &memory), 0);
    assert_true(memory.free.known);
    assert_int_equal(memory.free.value, 0);
    assert_ptr_equal(cuda_fixture_current(&fixture), other.pointer);
    assert_int_equal(cuda_driver.make_current(fixture.driver, &(struct native_context){0}), 0);
    assert_int_equal(cuda_driver.destroy(fixture.driver, other), 0);
    cuda_fixture_finish(&fixture);
}

static void memory_that_cannot_be_is_unknown(void **state)
{
    struct driver_memory memory;
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    fixture.world->cuda.lie("cuMemGetInfo_v2", 0, 16000000001, 1);
    assert_int_equal(cuda_driver.memory(fixture.driver, &fixture.context, &memory), 0);
    assert_true(memory.total.known);
    assert_false(memory.free.known);
    fixture.world->cuda.set_memory(0, 0, 0);
    assert_int_equal(cuda_driver.memory(fixture.driver, &fixture.context, &memory), 0);
    assert_false(memory.total.known || memory.free.known);
    fixture.world->cuda.set_memory(0, UINT64_MAX, 5);
    assert_int_equal(cuda_driver.memory(fixture.driver, &fixture.context, &memory), 0);
    assert_false(memory.total.known || memory.free.known);
    cuda_fixture_finish(&fixture);
}

/* Whichever call fails, the thread keeps its current context and the depth of its stack. */
static void the_threads_own_context_stays(void **state)
{
    static const struct {
        const char *call;
        int memory;
        int try;
        bool pops_late; /* after this the stack's depth cannot be restored */
    } cases[] = {
        {"cuCtxGetCurrent", 999, 999, false}, {"cuCtxPushCurrent_v2", 999, 999, false},
        {"cuMemGetInfo_v2", 999, 0, false},   {"cuStreamQuery", 0, 999, false},
        {"cuCtxPopCurrent_v2", 0, 0, true},
    };
    struct native_context own;
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    assert_int_equal(
        cuda_driver.create(fixture.driver, cuda_driver_device(fixture.driver, 1), 0, &own), 0);
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        const char *call = cases[i / 2].call;
        struct native_context *before = i % 2 == 0 ? &own : &(struct native_context){0};

        assert_int_equal(cuda_driver.make_current(fixture.driver, before), 0);
        fixture.world->cuda.refuse(call, CUDA_DOUBLE_ANY, 999, CUDA_DOUBLE_ALWAYS);
        assert_looks(&fixture, cases[i / 2].memory, cases[i / 2].try);
        fixture.world->cuda.refuse(call, CUDA_DOUBLE_ANY, 999, 0);
        assert_ptr_equal(cuda_fixture_current(&fixture), before->pointer);
        if (!cases[i / 2].pops_late)
            assert_int_equal(fixture.world->cuda.depth(), i % 2 == 0 ? 1 : 0);
        /* The same, if the call reports a failure after it has done its work. */
        fixture.world->cuda.grumble(call, CUDA_DOUBLE_ANY, 999, 1);
        cuda_driver.try(fixture.driver, &fixture.context);
        fixture.world->cuda.grumble(call, CUDA_DOUBLE_ANY, 999, 0);
        assert_ptr_equal(cuda_fixture_current(&fixture), before->pointer);
        while (fixture.world->cuda.depth() > 0)
            assert_int_equal(cuda_driver.make_current(fixture.driver, &(struct native_context){0}),
                             0);
    }
    /* A pop that reports another context is not believed. */
    fixture.world->cuda.lie("cuCtxPopCurrent_v2", CUDA_DOUBLE_ANY, 0, CUDA_DOUBLE_ALWAYS);
    assert_looks(&fixture, 0, 0);
    assert_null(cuda_fixture_current(&fixture));
    assert_int_equal(cuda_driver.destroy(fixture.driver, own), 0);
    cuda_fixture_finish(&fixture);
}

static void a_push_that_fails_late_is_taken_back(void **state)
{
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    fixture.world->cuda.grumble("cuCtxPushCurrent_v2", 0, 700, CUDA_DOUBLE_ALWAYS);
    assert_looks(&fixture, 700, 700);
    assert_int_equal(fixture.world->cuda.depth(), 0);
    cuda_fixture_finish(&fixture);
}

static void trying_does_not_wait(void **state)
{
    struct cuda_fixture fixture;

    cuda_fixture_begin(&fixture, state);
    fixture.world->cuda.run(0, true);
    assert_int_equal(cuda_driver.try(fixture.driver, &fixture.context), 0);
    fixture.world->cuda.run(0, false);
    for (int status = 900; status <= 908; status++) {
        fixture.world->cuda.refuse("cuStreamQuery", 0, status, 1);
        assert_int_equal(cuda_driver.try(fixture.driver, &fixture.context), 0);
    }
    fixture.world->cuda.refuse("cuStreamQuery", 0, 909, 1);
    assert_int_equal(cuda_driver.try(fixture.driver, &fixture.context), 909);
    cuda_fixture_finish(&fixture);
}

static void what_is_lost_says_so(void **state)
{
    struct cuda_fixture fixture;
    struct native_context none = {0};

    cuda_fixture_begin(&fixture, state);
    assert_int_equal(((struct cuda *)fixture.driver)->functions.reset(fixture.device.number), 0);
    assert_looks(&fixture, 709, 709);
    none = fixture.context;
    fixture.context.pointer = NULL;
    assert_looks(&fixture, 201, 709);
    fixture.context.pointer = &fixture; /* an invalid handle */
    assert_looks(&fixture, 201, 709);
    fixture.context = none;
    cuda_fixture_finish(&fixture);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, cuda_world_enter, cuda_world_leave)
    const struct CMUnitTest tests[] = {
        TEST(a_context_is_made_and_ended),
        TEST(making_one_may_fail),
        TEST(flags_are_set_before),
        TEST(flags_that_cannot_be_set_are_refused),
        TEST(older_drivers_keep_the_flags_of_what_lives),
        TEST(an_older_driver_does_all_of_it),
        TEST(none_is_ended_without_a_call),
        TEST(a_context_is_made_current),
        TEST(memory_is_asked_of_the_right_device),
        TEST(memory_that_cannot_be_is_unknown),
        TEST(the_threads_own_context_stays),
        TEST(a_push_that_fails_late_is_taken_back),
        TEST(trying_does_not_wait),
        TEST(what_is_lost_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
