/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's contexts behind their table: made, used, broken, made anew and ended.
 */
#include "support/unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "context/cuda.h"
#include "support/cuda_driver.h"

/* The driver, and the first GPU's device; each test begins with one context on it. */
struct fixture {
    struct cuda_world *world;
    struct driver *driver;
    struct native_device device;
    struct native_context context;
};

static void begin(struct fixture *fixture, void **state)
{
    fixture->world = *state;
    fixture->driver = cuda_driver_start(fixture->world);
    fixture->device = cuda_driver_device(fixture->driver, 0);
    fixture->context = (struct native_context){0};
    assert_int_equal(cuda_driver.create(fixture->driver, fixture->device, 0, &fixture->context), 0);
}

static struct cuda_double_counts counts(const struct fixture *fixture)
{
    return fixture->world->cuda.counts(0);
}

/* Ends the context; all that was retained is released. */
static void finish(struct fixture *fixture)
{
    assert_int_equal(cuda_driver.destroy(fixture->driver, fixture->context), 0);
    assert_int_equal(counts(fixture).references, 0);
    assert_int_equal(counts(fixture).retains, counts(fixture).releases);
    assert_int_equal(fixture->world->cuda.depth(), 0);
    free(fixture->driver);
}

/* What the program's thread has current, by CUDA's own word. */
static void *current(const struct fixture *fixture)
{
    void *context = NULL;

    assert_int_equal(((struct cuda *)fixture->driver)->functions.get_current(&context), 0);
    return context;
}

static void a_context_is_made_and_ended(void **state)
{
    struct fixture fixture;

    begin(&fixture, state);
    assert_non_null(fixture.context.pointer);
    assert_int_equal(fixture.context.device.number, fixture.device.number);
    assert_int_equal(counts(&fixture).retains, 1);
    assert_true(counts(&fixture).is_active);
    assert_int_equal(fixture.world->cuda.counts(1).retains, 0);
    assert_null(current(&fixture)); /* nobody asked for that */
    assert_int_equal(cuda_driver.try(fixture.driver, &fixture.context), 0);
    finish(&fixture);
    assert_false(counts(&fixture).is_active);
    assert_int_equal(counts(&fixture).resets, 0);
}

static void making_one_may_fail(void **state)
{
    static const int statuses[] = {2, 46, 100, 101, 201, 304, 700, 802, 805, 999, -1};
    struct native_context context = {.epoch = 77};
    struct fixture fixture;

    begin(&fixture, state);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        fixture.world->cuda.refuse("cuDevicePrimaryCtxRetain", 0, statuses[i], 1);
        assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 0, &context),
                         statuses[i]);
    }
    /* One that is no context, with success, is given back. */
    fixture.world->cuda.lie("cuDevicePrimaryCtxRetain", 0, 0, 1);
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 0, &context),
                     CUDA_ERROR_UNKNOWN);
    assert_null(context.pointer);
    assert_int_equal(context.epoch, 77); /* untouched */
    assert_int_equal(counts(&fixture).references, 1);
    finish(&fixture);
}

static void flags_are_set_before(void **state)
{
    struct fixture fixture;

    begin(&fixture, state);
    assert_int_equal(fixture.world->cuda.calls("cuDevicePrimaryCtxSetFlags_v2"), 0);
    assert_int_equal(cuda_driver.destroy(fixture.driver, fixture.context), 0);
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device,
                                        BERTH_CUDA_SCHED_BLOCKING_SYNC, &fixture.context),
                     0);
    assert_int_equal(counts(&fixture).flags, BERTH_CUDA_SCHED_BLOCKING_SYNC);
    finish(&fixture);
}

static void flags_that_cannot_be_set_are_refused(void **state)
{
    struct native_context other = {0};
    struct fixture fixture;

    begin(&fixture, state);
    fixture.world->cuda.refuse("cuDevicePrimaryCtxSetFlags_v2", 0, 1, 1);
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 4, &other), 1);
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 3, &other), 1);
    assert_null(other.pointer);
    assert_int_equal(counts(&fixture).retains, 1);
    finish(&fixture);
}

static void older_drivers_keep_the_flags_of_what_lives(void **state)
{
    static const struct {
        unsigned has;
        unsigned wants;
        int status;
    } cases[] = {
        {0x04, 0x04, 0},   {0x04, 0x01, 708}, {0x04, 0x0c, 0},   {0x0c, 0x04, 0},
        {0x04, 0x14, 708}, {0x14, 0x14, 0},   {0x14, 0x04, 0},   {0x10, 0x01, 708},
        {0x10, 0x10, 0},   {0x08, 0x08, 0},   {0x01, 0x08, 708},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct native_context other = {0};
        struct fixture fixture;

        cuda_world_loads(*state, "-old");
        begin(&fixture, state);
        assert_int_equal(cuda_driver.destroy(fixture.driver, fixture.context), 0);
        assert_int_equal(
            cuda_driver.create(fixture.driver, fixture.device, cases[i].has, &fixture.context), 0);
        assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, cases[i].wants, &other),
                         cases[i].status);
        /* Who cannot be asked has not said yes. */
        fixture.world->cuda.refuse("cuDevicePrimaryCtxGetState", 0, 999, 1);
        if (cases[i].status == 0)
            assert_int_equal(cuda_driver.destroy(fixture.driver, other), 0);
        assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, cases[i].wants, &other),
                         708);
        finish(&fixture);
    }
}

static void an_older_driver_does_all_of_it(void **state)
{
    struct fixture fixture;

    cuda_world_loads(*state, "-old");
    begin(&fixture, state);
    fixture.world->cuda.fault(0, 700);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 4), 0);
    assert_int_equal(cuda_driver.try(fixture.driver, &fixture.context), 0);
    assert_int_equal(counts(&fixture).resets, 1);
    finish(&fixture);
}

static void none_is_ended_without_a_call(void **state)
{
    struct fixture fixture;

    begin(&fixture, state);
    assert_int_equal(cuda_driver.destroy(fixture.driver, (struct native_context){0}), 0);
    assert_int_equal(fixture.world->cuda.calls("cuDevicePrimaryCtxRelease_v2"), 0);
    fixture.world->cuda.refuse("cuDevicePrimaryCtxRelease_v2", 0, 999, 1);
    assert_int_equal(cuda_driver.destroy(fixture.driver, fixture.context), 999);
    finish(&fixture);
}

static void a_context_is_made_current(void **state)
{
    struct fixture fixture;

    begin(&fixture, state);
    assert_int_equal(cuda_driver.make_current(fixture.driver, &fixture.context), 0);
    assert_ptr_equal(current(&fixture), fixture.context.pointer);
    fixture.world->cuda.refuse("cuCtxSetCurrent", CUDA_DOUBLE_ANY, 4, 1);
    assert_int_equal(cuda_driver.make_current(fixture.driver, &(struct native_context){0}), 4);
    assert_int_equal(cuda_driver.make_current(fixture.driver, &(struct native_context){0}), 0);
    assert_null(current(&fixture));
    finish(&fixture);
}

/* ---- Looking into a context ---- */

static void memory_is_asked_of_the_right_device(void **state)
{
    struct driver_memory memory;
    struct native_context other;
    struct fixture fixture;

    begin(&fixture, state);
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
    assert_ptr_equal(current(&fixture), other.pointer);
    assert_int_equal(cuda_driver.make_current(fixture.driver, &(struct native_context){0}), 0);
    assert_int_equal(cuda_driver.destroy(fixture.driver, other), 0);
    finish(&fixture);
}

static void memory_that_cannot_be_is_unknown(void **state)
{
    struct driver_memory memory;
    struct fixture fixture;

    begin(&fixture, state);
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
    finish(&fixture);
}

/* Looks into the context in both ways, which must say so. */
static void assert_looks(struct fixture *fixture, int status, int try_status)
{
    struct driver_memory memory = {.free = {.known = true, .value = 77}};

    assert_int_equal(cuda_driver.memory(fixture->driver, &fixture->context, &memory), status);
    if (status != 0)
        assert_int_equal(memory.free.value, 77); /* untouched */
    assert_int_equal(cuda_driver.try(fixture->driver, &fixture->context), try_status);
}

/* Whatever fails, the thread has current what it had, as deep as it had it. */
static void the_threads_own_context_stays(void **state)
{
    static const struct {
        const char *call;
        int memory;
        int try;
        bool pops_late; /* that pushed and popped do not balance is not for us to mend */
    } cases[] = {
        {"cuCtxGetCurrent", 999, 999, false}, {"cuCtxPushCurrent_v2", 999, 999, false},
        {"cuMemGetInfo_v2", 999, 0, false},   {"cuStreamQuery", 0, 999, false},
        {"cuCtxPopCurrent_v2", 0, 0, true},
    };
    struct native_context own;
    struct fixture fixture;

    begin(&fixture, state);
    assert_int_equal(
        cuda_driver.create(fixture.driver, cuda_driver_device(fixture.driver, 1), 0, &own), 0);
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        const char *call = cases[i / 2].call;
        struct native_context *before = i % 2 == 0 ? &own : &(struct native_context){0};

        assert_int_equal(cuda_driver.make_current(fixture.driver, before), 0);
        fixture.world->cuda.refuse(call, CUDA_DOUBLE_ANY, 999, CUDA_DOUBLE_ALWAYS);
        assert_looks(&fixture, cases[i / 2].memory, cases[i / 2].try);
        fixture.world->cuda.refuse(call, CUDA_DOUBLE_ANY, 999, 0);
        assert_ptr_equal(current(&fixture), before->pointer);
        if (!cases[i / 2].pops_late)
            assert_int_equal(fixture.world->cuda.depth(), i % 2 == 0 ? 1 : 0);
        /* The same, when the call was done for all its failing. */
        fixture.world->cuda.grumble(call, CUDA_DOUBLE_ANY, 999, 1);
        cuda_driver.try(fixture.driver, &fixture.context);
        fixture.world->cuda.grumble(call, CUDA_DOUBLE_ANY, 999, 0);
        assert_ptr_equal(current(&fixture), before->pointer);
        while (fixture.world->cuda.depth() > 0)
            assert_int_equal(cuda_driver.make_current(fixture.driver, &(struct native_context){0}),
                             0);
    }
    /* A pop that says it popped another is not believed. */
    fixture.world->cuda.lie("cuCtxPopCurrent_v2", CUDA_DOUBLE_ANY, 0, CUDA_DOUBLE_ALWAYS);
    assert_looks(&fixture, 0, 0);
    assert_null(current(&fixture));
    assert_int_equal(cuda_driver.destroy(fixture.driver, own), 0);
    finish(&fixture);
}

static void a_push_that_fails_late_is_taken_back(void **state)
{
    struct fixture fixture;

    begin(&fixture, state);
    fixture.world->cuda.grumble("cuCtxPushCurrent_v2", 0, 700, CUDA_DOUBLE_ALWAYS);
    assert_looks(&fixture, 700, 700);
    assert_int_equal(fixture.world->cuda.depth(), 0);
    finish(&fixture);
}

static void trying_does_not_wait(void **state)
{
    struct fixture fixture;

    begin(&fixture, state);
    fixture.world->cuda.run(0, true);
    assert_int_equal(cuda_driver.try(fixture.driver, &fixture.context), 0);
    fixture.world->cuda.run(0, false);
    for (int status = 900; status <= 908; status++) {
        fixture.world->cuda.refuse("cuStreamQuery", 0, status, 1);
        assert_int_equal(cuda_driver.try(fixture.driver, &fixture.context), 0);
    }
    fixture.world->cuda.refuse("cuStreamQuery", 0, 909, 1);
    assert_int_equal(cuda_driver.try(fixture.driver, &fixture.context), 909);
    finish(&fixture);
}

static void what_is_lost_says_so(void **state)
{
    struct fixture fixture;
    struct native_context none = {0};

    begin(&fixture, state);
    assert_int_equal(((struct cuda *)fixture.driver)->functions.reset(fixture.device.number), 0);
    assert_looks(&fixture, 709, 709);
    none = fixture.context;
    fixture.context.pointer = NULL;
    assert_looks(&fixture, 201, 709);
    fixture.context.pointer = &fixture; /* a handle of nobody's */
    assert_looks(&fixture, 201, 709);
    fixture.context = none;
    finish(&fixture);
}

/* ---- Faults ---- */

static void what_a_fault_broke_is_made_anew(void **state)
{
    struct fixture fixture;

    begin(&fixture, state);
    for (unsigned i = 1; i <= 3; i++) {
        fixture.world->cuda.fault(0, 700);
        assert_looks(&fixture, 700, 700);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
        assert_non_null(fixture.context.pointer);
        assert_int_equal(counts(&fixture).resets, i);
        assert_int_equal(counts(&fixture).references, 1);
        assert_looks(&fixture, 0, 0);
    }
    finish(&fixture);
}

/* Two sets on one device: the second finds what the first made, and does not end it. */
static void two_on_one_device_do_not_reset_each_other(void **state)
{
    struct native_context other;
    struct fixture fixture;

    begin(&fixture, state);
    assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 0, &other), 0);
    fixture.world->cuda.fault(0, 719);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
    assert_int_equal(counts(&fixture).lives, 2);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &other, 0), 0);
    assert_int_equal(counts(&fixture).lives, 2);
    assert_int_equal(counts(&fixture).resets, 1);
    assert_int_equal(other.epoch, fixture.context.epoch);
    assert_int_equal(counts(&fixture).references, 2);
    /* The next fault is of both again. */
    fixture.world->cuda.fault(0, 719);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &other, 0), 0);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
    assert_int_equal(counts(&fixture).resets, 2);
    assert_looks(&fixture, 0, 0);
    assert_int_equal(cuda_driver.destroy(fixture.driver, other), 0);
    finish(&fixture);
}

/* The first one's new context broke before the second came. */
static void a_new_one_that_is_broken_is_not_taken_over(void **state)
{
    static const int statuses[] = {700, 999};
    struct native_context other;
    struct fixture fixture;

    begin(&fixture, state);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 0, &other), 0);
        fixture.world->cuda.fault(0, 719);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
        fixture.world->cuda.fault(0, statuses[i]);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &other, 0), 0);
        assert_int_equal(cuda_driver.try(fixture.driver, &other), 0);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
        assert_int_equal(counts(&fixture).resets, 2 * (i + 1));
        assert_int_equal(cuda_driver.destroy(fixture.driver, other), 0);
    }
    finish(&fixture);
}

/* Whatever fails while a context is made anew: there is none, nothing is retained that is not
 * released, and the next attempt works. */
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
    struct fixture fixture;

    begin(&fixture, state);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fixture.world->cuda.fault(0, 700);
        fixture.world->cuda.refuse(cases[i].call, CUDA_DOUBLE_ANY, cases[i].status,
                                   CUDA_DOUBLE_ALWAYS);
        for (unsigned attempt = 0; attempt < 2; attempt++) {
            assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 4),
                             cases[i].wanted);
            assert_null(fixture.context.pointer);
            assert_int_equal(counts(&fixture).references, 0);
        }
        fixture.world->cuda.refuse(cases[i].call, CUDA_DOUBLE_ANY, 0, 0);
        assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 4), 0);
        assert_int_equal(counts(&fixture).references, 1);
        assert_looks(&fixture, 0, 0);
    }
    finish(&fixture);
}

/* What failed is a reset or a release by its word only: the fault that is to be cleared. */
static void the_old_fault_does_not_hinder_the_new_context(void **state)
{
    struct fixture fixture;

    begin(&fixture, state);
    fixture.world->cuda.fault(0, 700);
    fixture.world->cuda.grumble("cuDevicePrimaryCtxRelease_v2", 0, 700, 1);
    fixture.world->cuda.grumble("cuDevicePrimaryCtxReset_v2", 0, 700, 1);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 0);
    assert_looks(&fixture, 0, 0);
    assert_int_equal(counts(&fixture).references, 1);
    finish(&fixture);
}

static void a_failed_attempt_is_ended_without_a_call(void **state)
{
    struct fixture fixture;

    begin(&fixture, state);
    fixture.world->cuda.refuse("cuDevicePrimaryCtxRetain", 0, 2, 1);
    assert_int_equal(cuda_driver.rebuild(fixture.driver, &fixture.context, 0), 2);
    finish(&fixture);
}

/* ---- Threads ---- */

struct worker {
    const struct fixture *fixture;
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
    struct fixture fixture;
    struct worker workers[2];
    pthread_t threads[2];

    begin(&fixture, state);
    for (size_t i = 0; i < 2; i++) {
        workers[i] = (struct worker){.fixture = &fixture};
        assert_int_equal(cuda_driver.create(fixture.driver, fixture.device, 0, &workers[i].context),
                         0);
    }
    fixture.world->cuda.fault(0, 700);
    /* The first is in the middle of it when the second begins. */
    fixture.world->cuda.hold("cuDevicePrimaryCtxReset_v2", 0);
    assert_int_equal(pthread_create(&threads[0], NULL, make_anew, &workers[0]), 0);
    fixture.world->cuda.await(1);
    assert_int_equal(pthread_create(&threads[1], NULL, make_anew, &workers[1]), 0);
    /* Another device is in nobody's way. */
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
    assert_int_equal(counts(&fixture).resets, 1);
    finish(&fixture);
}

/* A thread that makes, uses and ends contexts, and makes those anew that somebody broke. */
static void *live(void *argument)
{
    struct worker *worker = argument;
    const struct fixture *fixture = worker->fixture;

    for (unsigned i = 0; i < 500; i++) {
        struct native_context context = {0};
        struct driver_memory memory;

        if (cuda_driver.create(fixture->driver, fixture->device, 0, &context) != 0)
            worker->status++;
        if (i % 7 == 0)
            fixture->world->cuda.fault(0, 700);
        if (cuda_driver.memory(fixture->driver, &context, &memory) != 0 &&
            cuda_driver.judge(cuda_driver.try(fixture->driver, &context)) == DRIVER_REBUILD) {
            int status = cuda_driver.rebuild(fixture->driver, &context, 0);

            /* Others break it while it is made. */
            if (status != 0 && cuda_driver.judge(status) != DRIVER_REBUILD)
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
    struct fixture fixture;
    struct worker workers[4];
    pthread_t threads[4];

    begin(&fixture, state);
    for (size_t i = 0; i < 4; i++) {
        workers[i] = (struct worker){.fixture = &fixture};
        assert_int_equal(pthread_create(&threads[i], NULL, live, &workers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].status, 0);
    }
    assert_int_equal(counts(&fixture).references, 1);
    assert_true(counts(&fixture).resets > 0);
    finish(&fixture);
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
        TEST(what_a_fault_broke_is_made_anew),
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
