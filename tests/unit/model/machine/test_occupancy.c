/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/machine/occupancy.h"

#include "base/count.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* A GPU with 80 GiB of memory, of which `used` bytes are in use. */
static struct device make_device(uint64_t used)
{
    return (struct device){
        .kind = DEVICE_KIND_DISCRETE,
        .memory_total = optional_number_of(80 * GIB),
        .load.memory_free = load_figure_sampled((int64_t)(80 * GIB - used), 1),
    };
}

static void memory_without_a_process_is_in_use(void **state)
{
    static const struct {
        uint64_t idle;
        uint64_t used;
        uint64_t margin;
        bool wanted;
    } cases[] = {
        {0, 0, GIB, false},
        {0, GIB, GIB, false},
        {0, GIB + 1, GIB, true},
        {600 * MIB, GIB, GIB, false},
        {600 * MIB, GIB + 600 * MIB, GIB, false},
        {600 * MIB, GIB + 601 * MIB, GIB, true},
        {600 * MIB, 80 * GIB, 100 * GIB, false},
        {600 * MIB, 80 * GIB, 0, false},
        /* It was in use when it was first seen: at most 80 GiB / 64 of that is idle memory. */
        {20 * GIB, 20 * GIB, GIB, true},
        {20 * GIB, 2 * GIB, GIB, false},
        {UINT64_MAX, 3 * GIB, GIB, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct device device = make_device(cases[i].used);

        device.memory_idle = optional_number_of(cases[i].idle);
        assert_int_equal(occupancy_is_hidden(&device, cases[i].margin), cases[i].wanted);
    }
}

static void small_devices_may_keep_a_gibibyte(void **state)
{
    struct device device = make_device(0);

    (void)state;
    device.memory_total = optional_number_of(8 * GIB);
    device.load.memory_free = load_figure_sampled((int64_t)(6 * GIB), 1);
    assert_false(occupancy_is_hidden(&device, GIB));
    device.load.memory_free.value--;
    assert_true(occupancy_is_hidden(&device, GIB));
}

static void what_is_unknown_proves_nothing(void **state)
{
    struct device_process process = {.pid = 7};
    struct device device = make_device(40 * GIB);

    (void)state;
    assert_true(occupancy_is_hidden(&device, GIB));
    device.old = true;
    assert_false(occupancy_is_hidden(&device, GIB));
    device.old = false;
    device.asleep = true;
    assert_false(occupancy_is_hidden(&device, GIB));
    device.asleep = false;
    /* A listed process is judged as itself. */
    device.processes.items = &process;
    device.processes.count = 1;
    assert_false(occupancy_is_hidden(&device, GIB));
    device.processes.count = 0;
    /* The memory of the machine is used by everybody. */
    device.kind = DEVICE_KIND_INTEGRATED;
    assert_false(occupancy_is_hidden(&device, GIB));
    device.kind = DEVICE_KIND_UNKNOWN;
    device.load.memory_free.known = false;
    assert_false(occupancy_is_hidden(&device, GIB));
    device.load.memory_free = load_figure_declared((int64_t)(40 * GIB));
    assert_false(occupancy_is_hidden(&device, GIB));
    device.load.memory_free = load_figure_sampled((int64_t)(81 * GIB), 1);
    assert_false(occupancy_is_hidden(&device, GIB));
    device.memory_total.known = false;
    assert_false(occupancy_is_hidden(&device, GIB));
}

/* Such as Xorg, which never squats. */
static void memory_beyond_that_of_listed_processes_is_in_use(void **state)
{
    struct device_process listed[] = {
        {.pid = 7, .memory = {.known = true, .value = 2 * GIB}},
        {.pid = 8, .memory = {.known = true, .value = 3 * GIB}},
    };
    struct device device = make_device(7 * GIB);

    (void)state;
    device.id.vendor = VENDOR_NVIDIA;
    device.memory_idle = optional_number_of(GIB);
    device.processes.items = listed;
    device.processes.count = COUNT(listed);
    assert_false(occupancy_is_hidden(&device, GIB));
    device.load.memory_free.value--;
    assert_true(occupancy_is_hidden(&device, GIB));
    /* They have more than what is in use: they share some of it. */
    listed[0].memory.value = 20 * GIB;
    assert_false(occupancy_is_hidden(&device, 1));
    listed[0].memory.value = UINT64_MAX;
    assert_false(occupancy_is_hidden(&device, 1));
    listed[0].memory.value = 0;
    assert_true(occupancy_is_hidden(&device, GIB));
    listed[0].memory.known = false;
    assert_false(occupancy_is_hidden(&device, GIB));
    /* The figures of other drivers do not include all memory. */
    listed[0].memory.known = true;
    device.id.vendor = VENDOR_AMD;
    assert_false(occupancy_is_hidden(&device, GIB));
}

static void the_least_memory_in_use_is_idle_memory(void **state)
{
    struct device device = make_device(5 * GIB);

    (void)state;
    occupancy_note_idle(&device, (struct optional_number){0});
    assert_int_equal(device.memory_idle.value, 5 * GIB);
    occupancy_note_idle(&device, optional_number_of(6 * GIB));
    assert_int_equal(device.memory_idle.value, 5 * GIB);
    occupancy_note_idle(&device, optional_number_of(GIB));
    assert_int_equal(device.memory_idle.value, GIB);
    device.old = true;
    occupancy_note_idle(&device, optional_number_of(6 * GIB));
    assert_int_equal(device.memory_idle.value, 6 * GIB);
    device.load.memory_free.known = false;
    device.old = false;
    occupancy_note_idle(&device, (struct optional_number){0});
    assert_false(device.memory_idle.known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_without_a_process_is_in_use),
        cmocka_unit_test(small_devices_may_keep_a_gibibyte),
        cmocka_unit_test(what_is_unknown_proves_nothing),
        cmocka_unit_test(memory_beyond_that_of_listed_processes_is_in_use),
        cmocka_unit_test(the_least_memory_in_use_is_idle_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
