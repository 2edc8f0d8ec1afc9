/* SPDX-License-Identifier: Apache-2.0
 *
 * Fingerprints: which changes of a pool they show, and which they ignore.
 */
#include "support/views/pool_views.h"

#include "view/pool_fingerprint.h"

/* Two devices, a lease on the first one, a process on it, and a claim. */
static struct pool_view busy_view(void)
{
    struct pool_view view = view_of(2);
    struct device_process *process;

    view_lease(&view, 7, 0, 1);
    process = vector_append(&view.snapshot.slots.items[0].device->processes);
    assert_non_null(process);
    *process = (struct device_process){.pid = 77, .lease = 7, .command = view_text("train")};
    view_claim(&view, 8, "1 device", "no free device");
    view.snapshot.pending = 1;
    assert_int_equal(pool_view_index(&view, NULL), 0);
    return view;
}

static struct device *first_device(struct pool_view *view)
{
    return view->snapshot.slots.items[0].device;
}

/* Asserts that the devices' fingerprint changes with `member`. */
#define CHECK_DEVICES(view, member, value)                            \
    do {                                                              \
        uint64_t print_before = pool_fingerprint_devices(&view);      \
                                                                      \
        (member) = (value);                                           \
        assert_true(pool_fingerprint_devices(&view) != print_before); \
    } while (0)

static void load_and_time_do_not_count(void **state)
{
    struct pool_view view = busy_view();
    uint64_t devices = pool_fingerprint_devices(&view);
    uint64_t events = pool_fingerprint_events(&view);

    (void)state;
    view.snapshot.time += DURATION_HOUR;
    first_device(&view)->load.utilization = load_figure_sampled(500, VIEW_NOW);
    first_device(&view)->load.memory_free = load_figure_sampled(1 << 30, VIEW_NOW);
    first_device(&view)->processes.items[0].memory = optional_number_of(1 << 20);
    view.snapshot.leases.items[0].idle = optional_number_of(DURATION_MINUTE);
    assert_true(pool_fingerprint_devices(&view) == devices);
    assert_true(pool_fingerprint_events(&view) == events);
    pool_view_finish(&view);
}

static void facts_of_devices_count(void **state)
{
    struct pool_view view = busy_view();
    struct slot_info *slot = &view.snapshot.slots.items[1];

    (void)state;
    CHECK_DEVICES(view, slot->state, SLOT_STATE_SICK);
    CHECK_DEVICES(view, slot->device->health, HEALTH_SICK);
    CHECK_DEVICES(view, slot->device->health_reason, view_text("it fell off the bus"));
    CHECK_DEVICES(view, slot->device->old, true);
    CHECK_DEVICES(view, slot->device->asleep, true);
    CHECK_DEVICES(view, slot->device->uuid, view_text("GPU-1"));
    CHECK_DEVICES(view, slot->device->parent, view_text("GPU-0"));
    CHECK_DEVICES(view, slot->device->cpus, view_text("0-3"));
    CHECK_DEVICES(view, slot->device->kind, DEVICE_KIND_DISCRETE);
    CHECK_DEVICES(view, slot->device->pci, ((struct pci_address){.known = true}));
    CHECK_DEVICES(view, slot->device->pci.function, 1);
    CHECK_DEVICES(view, slot->device->cap, ((struct capability){.known = true}));
    CHECK_DEVICES(view, slot->device->numa, optional_number_of(0));
    CHECK_DEVICES(view, slot->device->tiles, optional_number_of(2));
    CHECK_DEVICES(view, slot->reason, view_text("a new fan"));
    CHECK_DEVICES(view, slot->reason_uid, optional_number_of(0));
    CHECK_DEVICES(view, slot->reason_time, VIEW_NOW);
    pool_view_finish(&view);
}

static void processes_and_leases_of_devices_count(void **state)
{
    struct pool_view view = busy_view();
    struct device_process *process = &first_device(&view)->processes.items[0];

    (void)state;
    CHECK_DEVICES(view, process->uid, optional_number_of(1000));
    CHECK_DEVICES(view, process->container, view_text("0123"));
    CHECK_DEVICES(view, process->started, VIEW_NOW);
    CHECK_DEVICES(view, view.snapshot.slots.items[0].state, SLOT_STATE_DRAINING);
    CHECK_DEVICES(view, view.snapshot.leases.items[0].draining, true); /* it is a leftover now */
    CHECK_DEVICES(view, process->lease, 0);
    CHECK_DEVICES(view, process->squats, true);
    CHECK_DEVICES(view, view.snapshot.leases.items[0].id, 9);
    CHECK_DEVICES(view, view.uses.count, 0);
    pool_view_finish(&view);
}

static void problems_count(void **state)
{
    struct pool_view view = busy_view();
    uint64_t devices = pool_fingerprint_devices(&view);
    uint64_t events = pool_fingerprint_events(&view);
    struct problem *problem = vector_append(&view.snapshot.problems);

    (void)state;
    assert_non_null(problem);
    *problem = (struct problem){.backend = view_text("nvidia"), .message = view_text("no driver")};
    assert_true(pool_fingerprint_devices(&view) != devices);
    assert_true(pool_fingerprint_events(&view) != events);
    pool_view_finish(&view);
}

#define CHECK_LEASE(view, lease, member, value)                      \
    do {                                                             \
        uint64_t print_before = pool_fingerprint_lease(lease);       \
        uint64_t print_events = pool_fingerprint_events(&view);      \
                                                                     \
        (lease)->member = (value);                                   \
        assert_true(pool_fingerprint_lease(lease) != print_before);  \
        assert_true(pool_fingerprint_events(&view) != print_events); \
    } while (0)

static void changes_of_a_lease_count(void **state)
{
    struct pool_view view = busy_view();
    struct lease_info *lease = &view.snapshot.leases.items[0];

    (void)state;
    CHECK_LEASE(view, lease, draining, true);
    CHECK_LEASE(view, lease, idle_warned, true);
    CHECK_LEASE(view, lease, preparing, true);
    CHECK_LEASE(view, lease, adopted, true);
    CHECK_LEASE(view, lease, end, LEASE_END_EXPIRED);
    CHECK_LEASE(view, lease, expires, optional_number_of(0));
    CHECK_LEASE(view, lease, force_at, optional_number_of(0));
    CHECK_LEASE(view, lease, pid, 78);
    CHECK_LEASE(view, lease, name, view_text("training"));
    pool_view_finish(&view);
}

static void claims_within_the_limit_count(void **state)
{
    struct pool_view view = busy_view();
    struct claim_info *second = view_claim(&view, 9, "2 devices", NULL);
    uint64_t one = pool_fingerprint_queue(&view, 1);
    uint64_t both = pool_fingerprint_queue(&view, 2);

    (void)state;
    second->estimate = optional_number_of(0);
    assert_true(pool_fingerprint_queue(&view, 1) == one);
    assert_true(pool_fingerprint_queue(&view, 2) != both);
    view.snapshot.pending++;
    assert_true(pool_fingerprint_queue(&view, 1) != one);
    pool_view_finish(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_and_time_do_not_count),
        cmocka_unit_test(facts_of_devices_count),
        cmocka_unit_test(processes_and_leases_of_devices_count),
        cmocka_unit_test(problems_count),
        cmocka_unit_test(changes_of_a_lease_count),
        cmocka_unit_test(claims_within_the_limit_count),
    };

    return cmocka_run_group_tests_name("pool_fingerprint", tests, NULL, NULL);
}
