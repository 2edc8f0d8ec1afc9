/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of contexts on the CUDA double: creating, finding, choosing and releasing them.
 */
#include "base/count.h"
#include "support/assert_error.h"
#include "support/hardware/cuda_pool.h"

/* ---- Creating sets ---- */

static void no_devices_given_is_an_invalid_argument(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = {77, 88};
    const size_t none[] = {0};

    assert_fails(berth_contexts_create_on(world->pool, none, 0, NULL, &set, &world->error),
                 BERTH_ERROR_INVALID, &world->error,
                 "slots: expected at least one device, got none");
    assert_int_equal(berth_contexts_create_on(world->pool, NULL, 3, NULL, &set, NULL),
                     BERTH_ERROR_INVALID);
    assert_int_equal(set.id, 77);
}

static void no_device_is_an_error_of_its_own(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_pool *empty = pool_of(0);
    struct berth_context_set set;

    assert_fails(berth_contexts_create(empty, NULL, &set, &world->error), BERTH_ERROR_NO_DEVICE,
                 &world->error, "cannot create contexts: this pool has no devices");
    berth_pool_close(empty);
}

static void a_driver_that_is_not_there_is_said(void **state)
{
    struct cuda_pool *world = *state;
    const struct berth_context_options options = {.size = sizeof(options), .api = BERTH_API_CUDA};
    struct berth_context_set set;

    setenv("BERTH_CUDA", "/nowhere/libcuda.so.1", 1);
    assert_fails(berth_contexts_create(world->pool, &options, &set, &world->error),
                 BERTH_ERROR_NOT_FOUND, &world->error,
                 "nvidia0: cannot load /nowhere/libcuda.so.1: no such library");
    /* With any API, the message is still about CUDA. */
    assert_fails(berth_contexts_create(world->pool, NULL, &set, &world->error),
                 BERTH_ERROR_NOT_FOUND, &world->error,
                 "nvidia0: cannot load /nowhere/libcuda.so.1: no such library");
    unsetenv("BERTH_CUDA");
    setenv("BERTH_SYSROOT", "/nowhere", 1);
    assert_fails(berth_contexts_create(world->pool, &options, &set, &world->error),
                 BERTH_ERROR_NOT_FOUND, &world->error,
                 "nvidia0: cannot load libcuda.so.1: with BERTH_SYSROOT, set BERTH_CUDA to the "
                 "library to use");
    unsetenv("BERTH_SYSROOT");
}

static void wrong_slots_and_options_are_refused(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_options options = {.size = sizeof(options)};
    struct berth_context_set set;

    assert_fails(
        berth_contexts_create_on(world->pool, (const size_t[]){0, 3}, 2, NULL, &set, &world->error),
        BERTH_ERROR_RANGE, &world->error, "slot: expected 0 to 2, got 3");
    assert_fails(berth_contexts_create_on(world->pool, (const size_t[]){1, 0, 1}, 3, NULL, &set,
                                          &world->error),
                 BERTH_ERROR_INVALID, &world->error, "slots: slot 1 is listed twice");
    options.cuda_flags = BERTH_CUDA_SCHED_SPIN | BERTH_CUDA_SCHED_YIELD;
    assert_int_equal(berth_contexts_create(world->pool, &options, &set, NULL), BERTH_ERROR_INVALID);
    options.cuda_flags = 0x40;
    assert_fails(berth_contexts_create(world->pool, &options, &set, &world->error),
                 BERTH_ERROR_INVALID, &world->error,
                 "options: cuda_flags: expected flags of enum berth_cuda_flags, at most one SCHED "
                 "flag, got 0x40");
    options = (struct berth_context_options){.size = sizeof(options), .api = (enum berth_api)3};
    assert_int_equal(berth_contexts_create(world->pool, &options, &set, NULL), BERTH_ERROR_INVALID);
    options = (struct berth_context_options){.size = 1};
    assert_int_equal(berth_contexts_create(world->pool, &options, &set, NULL), BERTH_ERROR_INVALID);
    assert_all_given_back(world);
}

static void flags_reach_the_primary_contexts(void **state)
{
    struct cuda_pool *world = *state;
    const struct berth_context_options options = {
        .size = sizeof(options),
        .cuda_flags = BERTH_CUDA_SCHED_BLOCKING_SYNC | BERTH_CUDA_MAP_HOST,
    };
    struct berth_context_set set;

    assert_works(berth_contexts_create(world->pool, &options, &set, &world->error), &world->error);
    /* Only one of the two flags is set: host memory is mapped in all contexts. */
    assert_int_equal(world->cuda.counts(1).flags, BERTH_CUDA_SCHED_BLOCKING_SYNC);
}

/* Each device of the pool is found by its identity, not by its number. */
static void contexts_are_on_the_devices_meant(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set;

    assert_works(
        berth_contexts_create_on(world->pool, (const size_t[]){2, 0}, 2, NULL, &set, &world->error),
        &world->error);
    assert_int_equal(berth_contexts_count(world->pool, set, NULL), 2);
    assert_true(world->cuda.counts(0).is_active);
    assert_false(world->cuda.counts(1).is_active);
    assert_true(world->cuda.counts(2).is_active);
    for (size_t i = 0; i < 2; i++) {
        struct berth_context_info info = cuda_pool_info(world, cuda_pool_at(world, set, i));

        assert_int_equal(info.slot, i == 0 ? 2 : 0);
        assert_int_equal(info.index, info.slot);
        assert_int_equal(info.vendor, BERTH_NVIDIA);
        assert_int_equal(info.mig, BERTH_NO_MIG);
        assert_int_equal(info.api, BERTH_API_CUDA);
        assert_non_null(info.context);
        assert_null(info.device);
        assert_false(info.stands_in);
        assert_int_equal(info.memory_total, 16 * GIBIBYTE);
        assert_int_equal(info.memory_free, (8 + info.slot) * GIBIBYTE);
        /* CUDA's number 0 is the fastest. */
        assert_int_equal(info.cuda_device, info.slot == 2 ? 0 : 1);
    }
}

static void a_device_that_is_hidden_is_not_replaced_by_another(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set;

    setenv("CUDA_VISIBLE_DEVICES", cuda_pool_uuids[1], 1);
    world->cuda.restart(true);
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(berth_contexts_create(world->pool, NULL, &set, &world->error),
                     BERTH_ERROR_NOT_FOUND);
    assert_non_null(strstr(world->error.message, "nvidia0: "));
    assert_non_null(strstr(world->error.message, "CUDA_VISIBLE_DEVICES"));
    assert_works(
        berth_contexts_create_on(world->pool, (const size_t[]){1}, 1, NULL, &set, &world->error),
        &world->error);
    assert_true(world->cuda.counts(1).is_active);
}

static void making_is_all_or_nothing(void **state)
{
    static const struct {
        int status;
        int code;
    } failures[] = {
        {2, BERTH_ERROR_BUSY},     /* no memory */
        {46, BERTH_ERROR_BUSY},    /* another process has it */
        {101, BERTH_ERROR_DRIVER}, /* the device is gone */
        {214, BERTH_ERROR_DRIVER}, /* uncorrectable */
        {999, BERTH_ERROR_DRIVER},
    };
    struct cuda_pool *world = *state;
    struct berth_context_set set = {77, 88};

    for (size_t i = 0; i < COUNT(failures); i++) {
        world->cuda.refuse("cuDevicePrimaryCtxRetain", 2, failures[i].status, 1);
        assert_int_equal(berth_contexts_create(world->pool, NULL, &set, &world->error),
                         failures[i].code);
        assert_non_null(strstr(world->error.message, "cannot create a context on nvidia2: CUDA_"));
        assert_int_equal(set.id, 77);
        assert_all_given_back(world);
    }
}

/* ---- Finding ---- */

static void contexts_are_found_by_position_and_by_id(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context context = {.set = 77};

    assert_fails(berth_contexts_at(world->pool, set, 3, &context, &world->error), BERTH_ERROR_RANGE,
                 &world->error, "expected a position below 3, got 3");
    assert_int_equal(berth_contexts_at(world->pool, set, SIZE_MAX, &context, NULL),
                     BERTH_ERROR_RANGE);
    assert_fails(berth_contexts_find(world->pool, set, "nvidia3", &context, &world->error),
                 BERTH_ERROR_NOT_FOUND, &world->error, "no context on nvidia3 in this set");
    assert_int_equal(berth_contexts_find(world->pool, set, "gpu 1", &context, NULL),
                     BERTH_ERROR_SYNTAX);
    assert_int_equal(context.set, 77);
    assert_works(berth_contexts_find(world->pool, set, "nvidia1", &context, &world->error),
                 &world->error);
    assert_int_equal(context.position, 1);
    assert_int_equal(context.generation, 1);
    assert_int_equal(cuda_pool_info(world, context).slot, 1);
}

static void handles_of_others_are_not_found(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context context = cuda_pool_at(world, set, 1);
    struct berth_context_set other = set;
    struct berth_context_info info = {.size = sizeof(info)};

    other.pool++;
    assert_int_equal(berth_contexts_count(world->pool, other, NULL), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(berth_contexts_release(world->pool, other, NULL), BERTH_ERROR_NOT_FOUND);
    other = (struct berth_context_set){set.id + 1, set.pool};
    assert_int_equal(berth_contexts_count(world->pool, other, NULL), BERTH_ERROR_NOT_FOUND);
    context.generation = 2;
    assert_int_equal(berth_context_info(world->pool, context, &info, NULL), BERTH_ERROR_NOT_FOUND);
    context.generation = 0;
    assert_int_equal(berth_context_release(world->pool, context, NULL), BERTH_ERROR_NOT_FOUND);
    context.generation = 1;
    context.position = 3;
    assert_int_equal(berth_context_info(world->pool, context, &info, NULL), BERTH_ERROR_RANGE);
    context = (struct berth_context){0};
    assert_int_equal(berth_context_make_current(world->pool, context, NULL), BERTH_ERROR_NOT_FOUND);
}

static void all_can_be_gone_through(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context contexts[4] = {{0}};

    assert_int_equal(berth_contexts_list(world->pool, set, NULL, 0, NULL), 3);
    assert_int_equal(berth_contexts_list(world->pool, set, contexts, 4, NULL), 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(contexts[i].position, i);
    assert_works(berth_context_release(world->pool, contexts[1], &world->error), &world->error);
    assert_int_equal(berth_contexts_list(world->pool, set, contexts, 1, NULL), 2);
    assert_int_equal(berth_contexts_list(world->pool, set, contexts, 4, NULL), 2);
    assert_int_equal(contexts[1].position, 2);
    assert_int_equal(berth_contexts_count(world->pool, set, NULL), 3);
}

static void a_line_describes_a_set(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    static const char whole[] = "3 contexts: nvidia0 CUDA (lost), nvidia1 CUDA (released), nvidia2 "
                                "CUDA";
    enum berth_fault fault;
    char line[128];
    char small[12];

    assert_int_equal(berth_contexts_describe(world->pool, set, line, sizeof(line), NULL),
                     strlen("3 contexts: nvidia0 CUDA, nvidia1 CUDA, nvidia2 CUDA"));
    assert_string_equal(line, "3 contexts: nvidia0 CUDA, nvidia1 CUDA, nvidia2 CUDA");
    world->cuda.fault(0, 700);
    assert_works(
        berth_context_report(world->pool, cuda_pool_at(world, set, 0), 700, &fault, &world->error),
        &world->error);
    assert_works(berth_context_release(world->pool, cuda_pool_at(world, set, 1), &world->error),
                 &world->error);
    assert_int_equal(berth_contexts_describe(world->pool, set, line, sizeof(line), NULL),
                     strlen(whole));
    assert_string_equal(line, whole);
    assert_int_equal(berth_contexts_describe(world->pool, set, small, sizeof(small), NULL),
                     strlen(whole));
    assert_string_equal(small, "3 contexts:");
    assert_int_equal(berth_contexts_describe(world->pool, set, NULL, 0, NULL), strlen(whole));
}

/* ---- Choosing ---- */

static uint32_t next(struct cuda_pool *world, struct berth_context_set set)
{
    struct berth_context context;

    assert_works(berth_contexts_next(world->pool, set, &context, &world->error), &world->error);
    return context.position;
}

static void turns_go_round(void **state)
{
    static const uint32_t wanted[] = {0, 1, 2, 0, 1, 2, 0};
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context_set single;

    for (size_t i = 0; i < COUNT(wanted); i++)
        assert_int_equal(next(world, set), wanted[i]);
    assert_works(
        berth_contexts_create_on(world->pool, (const size_t[]){1}, 1, NULL, &single, &world->error),
        &world->error);
    for (int i = 0; i < 10; i++)
        assert_int_equal(next(world, single), 0);
}

/* The context behind a lost one does not get the turns of the lost one. */
static void turns_stay_even_when_one_is_lost(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    unsigned had[3] = {0};
    enum berth_fault fault;

    world->cuda.fault(1, 719);
    assert_works(
        berth_context_report(world->pool, cuda_pool_at(world, set, 1), 719, &fault, &world->error),
        &world->error);
    for (int i = 0; i < 100; i++)
        had[next(world, set)]++;
    assert_int_equal(had[0], 50);
    assert_int_equal(had[1], 0);
    assert_int_equal(had[2], 50);
    for (size_t i = 0; i < 3; i += 2)
        assert_works(berth_context_release(world->pool, cuda_pool_at(world, set, i), &world->error),
                     &world->error);
    assert_int_equal(berth_contexts_next(world->pool, set, &(struct berth_context){0}, NULL),
                     BERTH_ERROR_LOST);
    assert_int_equal(berth_contexts_best(world->pool, set, 0, &(struct berth_context){0}, NULL),
                     BERTH_ERROR_LOST);
}

static uint32_t best(struct cuda_pool *world, struct berth_context_set set, uint64_t bytes)
{
    struct berth_context context;

    assert_works(berth_contexts_best(world->pool, set, bytes, &context, &world->error),
                 &world->error);
    return context.position;
}

static void the_best_has_the_most_memory_free_not_the_most_in_all(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);

    assert_int_equal(best(world, set, 0), 2);
    world->cuda.set_memory(2, 80 * GIBIBYTE, 1 * GIBIBYTE);
    assert_int_equal(best(world, set, 0), 1);
    world->cuda.set_memory(0, 16 * GIBIBYTE, 9 * GIBIBYTE);
    assert_int_equal(best(world, set, 0), 0); /* the first of equals */
}

static void what_was_promised_counts_until_it_is_seen(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);

    /* 8, 9 and 10 GiB are free. */
    assert_int_equal(best(world, set, 4 * GIBIBYTE), 2);
    assert_int_equal(best(world, set, 4 * GIBIBYTE), 1);
    assert_int_equal(best(world, set, 4 * GIBIBYTE), 0);
    assert_int_equal(best(world, set, 4 * GIBIBYTE), 2);
    assert_fails(berth_contexts_best(world->pool, set, 6 * GIBIBYTE, &(struct berth_context){0},
                                     &world->error),
                 BERTH_ERROR_BUSY, &world->error,
                 "requested 6442450944 bytes, but at most 5368709120 are free on a device");
    world->cuda.set_memory(2, 16 * GIBIBYTE, 10 * GIBIBYTE + 1);
    assert_int_equal(best(world, set, 6 * GIBIBYTE), 2);
}

static void memory_that_is_not_known_is_not_compared(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    const struct berth_load sampled = {.memory_free = 1024, .utilization = BERTH_UNKNOWN};

    world->cuda.refuse("cuMemGetInfo_v2", CUDA_DOUBLE_ANY, 801, CUDA_DOUBLE_ALWAYS);
    assert_fails(
        berth_contexts_best(world->pool, set, 0, &(struct berth_context){0}, &world->error),
        BERTH_ERROR_IMPOSSIBLE, &world->error,
        "cannot choose by free memory: it is unknown for all devices");
    assert_int_equal(cuda_pool_info(world, cuda_pool_at(world, set, 1)).memory_free, BERTH_UNKNOWN);
    /* The value that the pool has sampled is used instead. */
    assert_works(berth_report_load(world->pool, 1, &sampled, &world->error), &world->error);
    assert_int_equal(best(world, set, 0), 1);
    assert_int_equal(cuda_pool_info(world, cuda_pool_at(world, set, 1)).memory_free, 1024);
}

/* ---- Releasing ---- */

static void each_is_released_exactly_once(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context first = cuda_pool_at(world, set, 0);

    assert_works(berth_context_release(world->pool, first, &world->error), &world->error);
    assert_fails(berth_context_release(world->pool, first, &world->error), BERTH_ERROR_NOT_FOUND,
                 &world->error, "the context on nvidia0 is released");
    assert_int_equal(berth_context_make_current(world->pool, first, NULL), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(berth_contexts_at(world->pool, set, 0, &first, NULL), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(world->cuda.counts(0).releases, 1);
    assert_works(berth_contexts_release(world->pool, set, &world->error), &world->error);
    assert_int_equal(berth_contexts_release(world->pool, set, &world->error),
                     BERTH_ERROR_NOT_FOUND);
    assert_int_equal(berth_contexts_count(world->pool, set, NULL), BERTH_ERROR_NOT_FOUND);
    assert_all_given_back(world);
    for (int unit = 0; unit < 3; unit++)
        assert_int_equal(world->cuda.counts(unit).releases, 1);
}

static void closing_the_pool_ends_all(void **state)
{
    struct cuda_pool *world = *state;

    cuda_pool_set(world);
    cuda_pool_set(world);
    assert_int_equal(world->cuda.counts(0).references, 2);
    berth_pool_close(world->pool);
    assert_all_given_back(world);
    cuda_pool_open(world);
}

static void the_current_context_is_the_threads_own(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context context;

    assert_fails(berth_context_current(world->pool, &context, &world->error), BERTH_ERROR_NOT_FOUND,
                 &world->error, "this thread has no current context");
    assert_int_equal(world->cuda.depth(), 0);
    assert_works(
        berth_context_make_current(world->pool, cuda_pool_at(world, set, 2), &world->error),
        &world->error);
    assert_int_equal(world->cuda.depth(), 1);
    assert_works(berth_context_current(world->pool, &context, &world->error), &world->error);
    assert_int_equal(context.position, 2);
    /* Choosing and querying do not change it. */
    best(world, set, 0);
    cuda_pool_info(world, cuda_pool_at(world, set, 0));
    assert_int_equal(world->cuda.depth(), 1);
    assert_works(berth_context_release(world->pool, context, &world->error), &world->error);
    assert_int_equal(berth_context_current(world->pool, &context, NULL), BERTH_ERROR_NOT_FOUND);
}

static void members_that_the_caller_does_not_know_are_left_alone(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context context = cuda_pool_at(world, cuda_pool_set(world), 1);
    struct berth_context_info info;

    memset(&info, 0x55, sizeof(info));
    info.size = offsetof(struct berth_context_info, context);
    assert_works(berth_context_info(world->pool, context, &info, &world->error), &world->error);
    assert_int_equal(info.size, offsetof(struct berth_context_info, context));
    assert_int_equal(info.slot, 1);
    assert_int_equal((uintptr_t)info.context & 0xff, 0x55);
    info.size = 0;
    assert_fails(berth_context_info(world->pool, context, &info, &world->error),
                 BERTH_ERROR_INVALID, &world->error,
                 "info: size: expected the struct's size in bytes, got 0");
}

#define contexts_test(function) \
    cmocka_unit_test_setup_teardown(function, cuda_pool_enter, cuda_pool_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        contexts_test(no_devices_given_is_an_invalid_argument),
        contexts_test(no_device_is_an_error_of_its_own),
        contexts_test(a_driver_that_is_not_there_is_said),
        contexts_test(wrong_slots_and_options_are_refused),
        contexts_test(flags_reach_the_primary_contexts),
        contexts_test(contexts_are_on_the_devices_meant),
        contexts_test(a_device_that_is_hidden_is_not_replaced_by_another),
        contexts_test(making_is_all_or_nothing),
        contexts_test(contexts_are_found_by_position_and_by_id),
        contexts_test(handles_of_others_are_not_found),
        contexts_test(all_can_be_gone_through),
        contexts_test(a_line_describes_a_set),
        contexts_test(turns_go_round),
        contexts_test(turns_stay_even_when_one_is_lost),
        contexts_test(the_best_has_the_most_memory_free_not_the_most_in_all),
        contexts_test(what_was_promised_counts_until_it_is_seen),
        contexts_test(memory_that_is_not_known_is_not_compared),
        contexts_test(each_is_released_exactly_once),
        contexts_test(closing_the_pool_ends_all),
        contexts_test(the_current_context_is_the_threads_own),
        contexts_test(members_that_the_caller_does_not_know_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
