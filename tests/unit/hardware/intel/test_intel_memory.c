/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/intel/intel_memory.h"

#include <errno.h>

#include "support/failing_allocator.h"
#include "support/hardware/made_up_machine.h"

#define GIB (UINT64_C(1) << 30)

/* A driver that first returns the length of its answer, then the answer. */
struct puppet {
    unsigned long request;
    const void *answer;
    size_t length;
    int64_t claimed; /* the length that it returns first; 0: the correct one */
    int64_t later;   /* the length that it returns with the answer; 0: the same */
    int calls;
    int fails_at; /* the call that fails; 0: none */
};

static int32_t claim(const struct puppet *puppet, bool first)
{
    int64_t length = puppet->claimed != 0 ? puppet->claimed : (int64_t)puppet->length;

    return (int32_t)(!first && puppet->later != 0 ? puppet->later : length);
}

/* Copies as much as fits into the caller's buffer. */
static void answer(const struct puppet *puppet, uint64_t data, int64_t room)
{
    size_t length = (int64_t)puppet->length < room ? puppet->length : (size_t)room;

    memcpy((void *)(uintptr_t)data, puppet->answer, length);
}

static int control(void *own, unsigned long request, void *argument)
{
    struct puppet *puppet = own;

    assert_int_equal(request, puppet->request);
    if (++puppet->calls == puppet->fails_at) {
        errno = EINVAL;
        return -1;
    }
    if (request == I915_REQUEST_QUERY) {
        struct i915_query *query = argument;
        struct i915_query_item *item = (void *)(uintptr_t)query->items;
        bool first = item->length == 0;

        assert_int_equal(query->count, 1);
        assert_int_equal(item->query, I915_QUERY_REGIONS);
        if (!first)
            answer(puppet, item->data, item->length);
        item->length = claim(puppet, first);
    } else {
        struct xe_query *query = argument;
        bool first = query->size == 0;

        assert_int_equal(query->query, XE_QUERY_REGIONS);
        if (!first)
            answer(puppet, query->data, query->size);
        query->size = (uint32_t)claim(puppet, first);
    }
    return 0;
}

/* System memory and two tiles. */
static const struct {
    uint32_t count;
    uint32_t reserved[3];
    struct i915_region regions[3];
} i915_answer = {
    .count = 3,
    .regions =
        {
            {.class = 0, .size = 64 * GIB, .unallocated = 60 * GIB},
            {.class = 1, .size = 16 * GIB, .unallocated = 15 * GIB},
            {.class = 1, .instance = 1, .size = 16 * GIB, .unallocated = 16 * GIB},
        },
};

static const struct {
    uint32_t count;
    uint32_t reserved;
    struct xe_region regions[2];
} xe_answer = {
    .count = 2,
    .regions =
        {
            {.class = 0, .size = 64 * GIB, .used = 4 * GIB},
            {.class = 1, .size = 12 * GIB, .used = 5 * GIB},
        },
};

static struct intel_memory ask_i915(struct puppet puppet)
{
    puppet.request = I915_REQUEST_QUERY;
    return intel_memory_query("i915", &(struct intel_driver){control, &puppet});
}

static struct intel_memory ask_xe(struct puppet puppet)
{
    puppet.request = XE_REQUEST_QUERY;
    return intel_memory_query("xe", &(struct intel_driver){control, &puppet});
}

static void check_nothing(struct intel_memory memory)
{
    assert_false(memory.answered);
    assert_false(memory.total.known);
    assert_false(memory.free_now.known);
}

static void i915_tells_its_tiles(void **state)
{
    struct intel_memory memory;

    (void)state;
    memory = ask_i915((struct puppet){.answer = &i915_answer, .length = sizeof(i915_answer)});
    assert_true(memory.answered);
    assert_true(memory.total.known);
    assert_int_equal(memory.total.value, 32 * GIB);
    assert_true(memory.free_now.known);
    assert_int_equal(memory.free_now.value, 31 * GIB);
}

static void xe_tells_what_is_used(void **state)
{
    struct intel_memory memory;

    (void)state;
    memory = ask_xe((struct puppet){.answer = &xe_answer, .length = sizeof(xe_answer)});
    assert_true(memory.answered);
    assert_int_equal(memory.total.value, 12 * GIB);
    assert_true(memory.free_now.known);
    assert_int_equal(memory.free_now.value, 7 * GIB);
}

static void without_permission_free_memory_is_unknown(void **state)
{
    struct {
        uint32_t count;
        uint32_t reserved;
        struct xe_region regions[1];
    } xe = {.count = 1, .regions = {{.class = 1, .size = 12 * GIB}}};
    struct {
        uint32_t count;
        uint32_t reserved[3];
        struct i915_region regions[1];
    } i915 = {.count = 1, .regions = {{.class = 1, .size = 8 * GIB, .unallocated = 8 * GIB}}};
    struct intel_memory memory;

    (void)state;
    memory = ask_xe((struct puppet){.answer = &xe, .length = sizeof(xe)});
    assert_int_equal(memory.total.value, 12 * GIB);
    assert_false(memory.free_now.known);
    memory = ask_i915((struct puppet){.answer = &i915, .length = sizeof(i915)});
    assert_int_equal(memory.total.value, 8 * GIB);
    assert_false(memory.free_now.known);
    i915.regions[0].unallocated = UINT64_MAX; /* unknown, for i915 */
    memory = ask_i915((struct puppet){.answer = &i915, .length = sizeof(i915)});
    assert_true(memory.total.known);
    assert_false(memory.free_now.known);
    xe.regions[0].used = 13 * GIB;
    memory = ask_xe((struct puppet){.answer = &xe, .length = sizeof(xe)});
    assert_true(memory.total.known);
    assert_false(memory.free_now.known);
}

static void an_integrated_one_has_none(void **state)
{
    struct {
        uint32_t count;
        uint32_t reserved;
        struct xe_region regions[1];
    } xe = {.count = 1, .regions = {{.class = 0, .size = 12 * GIB}}};
    struct intel_memory memory;

    (void)state;
    memory = ask_xe((struct puppet){.answer = &xe, .length = sizeof(xe)});
    assert_true(memory.answered);
    assert_false(memory.total.known);
    assert_false(memory.free_now.known);
}

static void lies_tell_nothing(void **state)
{
    struct {
        uint32_t count;
        uint32_t reserved;
        struct xe_region regions[2];
    } lie = {.count = 3, .regions = {{.class = 1, .size = 1}, {.class = 1, .size = 1}}};
    struct puppet puppet = {.answer = &lie, .length = sizeof(lie)};

    (void)state;
    check_nothing(ask_xe(puppet)); /* more regions than fit */
    lie.count = UINT32_MAX;
    check_nothing(ask_xe(puppet));
    lie.count = 2;
    lie.regions[0].size = INT64_MAX;
    check_nothing(ask_xe(puppet)); /* the sum is too large */
    lie.regions[0].size = UINT64_MAX;
    check_nothing(ask_xe(puppet));

    puppet = (struct puppet){.answer = &i915_answer, .length = sizeof(i915_answer)};
    for (puppet.claimed = 1; puppet.claimed < (int64_t)sizeof(i915_answer); puppet.claimed++)
        check_nothing(ask_i915(puppet)); /* the buffer is smaller than the regions */
    puppet.claimed = 65537;
    check_nothing(ask_i915(puppet));
    puppet.claimed = -22;
    check_nothing(ask_i915(puppet));
    puppet.claimed = 0;
    puppet.later = -22;
    check_nothing(ask_i915(puppet));
    puppet.later = 65000; /* the second length is larger */
    check_nothing(ask_i915(puppet));
}

static void a_driver_that_fails_tells_nothing(void **state)
{
    struct puppet puppet = {.answer = &xe_answer, .length = sizeof(xe_answer)};

    (void)state;
    for (puppet.fails_at = 1; puppet.fails_at <= 2; puppet.fails_at++) {
        check_nothing(ask_xe(puppet));
        check_nothing(ask_i915(puppet));
    }
    puppet.fails_at = 0;
    failing_allocator_start(1);
    check_nothing(ask_xe(puppet));
    assert_true(failing_allocator_stop());
    check_nothing(intel_memory_query("nouveau", &(struct intel_driver){control, &puppet}));
    check_nothing(intel_memory_query(NULL, &(struct intel_driver){control, &puppet}));
}

/* A device file that exists but is not a GPU's. */
static void other_files_tell_nothing(void **state)
{
    struct drm_device drm = {.driver = (char[]){"xe"}, .render = (char[]){"renderD128"}};

    (void)state;
    machine_directory("/dev/dri");
    check_nothing(intel_memory_read(&machine, &drm));
    machine.recorded = false;
    check_nothing(intel_memory_read(&machine, &drm));
    assert_int_equal(symlink("/dev/null", "dev/dri/renderD128"), 0);
    check_nothing(intel_memory_read(&machine, &drm));
    drm.render = NULL;
    check_nothing(intel_memory_read(&machine, &drm));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(i915_tells_its_tiles),
        cmocka_unit_test(xe_tells_what_is_used),
        cmocka_unit_test(without_permission_free_memory_is_unknown),
        cmocka_unit_test(an_integrated_one_has_none),
        cmocka_unit_test(lies_tell_nothing),
        cmocka_unit_test(a_driver_that_fails_tells_nothing),
        cmocka_unit_test_setup_teardown(other_files_tell_nothing, machine_enter, machine_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
