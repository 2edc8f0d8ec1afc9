/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/pool_facts.h"

#include <string.h>

#include "daemon/devices/device_locks.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/lease_warnings.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

static int begin(void **state)
{
    static const struct pool_part parts[] = {{device_drain_init, device_drain_finish}};

    *state = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1", .parts = parts, .part_count = COUNT(parts)});
    return 0;
}

static struct slot_info slot_of(const struct pool *pool, uint32_t slot)
{
    struct slot_info item;

    pool_facts_fill_slot(pool, slot, &item);
    return item;
}

#define assert_state(pool, slot, wanted) \
    assert_string_equal(choice_name(slot_state_names, (int)slot_of(pool, slot).state), wanted)

static void the_counts_are_of_this_moment(void **state)
{
    struct pool_stage *stage = *state;
    struct pool_snapshot counts;

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=1"});
    pool_stage_go_on(stage, 5);
    counts = pool_facts_counts(&stage->pool);
    assert_int_equal(counts.capacity, 2);
    assert_int_equal(counts.pending, 2);
    assert_int_equal(counts.time, STAGE_NOW + 5);
}

static void a_lease_decides_about_the_state(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *job;

    assert_state(pool, 0, "free");
    job = pool_stage_claim(stage, &(struct stage_claim){.words = "device=nvidia0"});
    assert_state(pool, 0, "leased");
    assert_state(pool, 1, "free");
    /* A leased device that is drained, sick or gone is leased all the same. */
    engine_block(pool->engine, 0, BLOCK_DRAINED);
    engine_device_health(pool->engine, 0, HEALTH_SICK);
    engine_device_gone(pool->engine, 0);
    assert_state(pool, 0, "leased");
    job->state = JOB_LOOKING;
    assert_state(pool, 0, "draining");
    job->state = JOB_DRAINING;
    assert_state(pool, 0, "draining");
    pool_stage_claim(stage, &(struct stage_claim){.words = "sharing=time-slice share=500"});
    assert_state(pool, 1, "shared");
    assert_int_equal(slot_of(pool, 1).sharing, SHARING_TIME_SLICE);
    assert_int_equal(slot_of(pool, 1).tenants, 1);
    assert_int_equal(slot_of(pool, 1).share_used, 500000);
}

/* Of several reasons, the state is the one that the administrator must act on first. */
static void the_first_reason_is_the_state(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct engine *engine = pool->engine;
    struct device asleep = {.asleep = true};

    engine_device_observe(engine, 0, &asleep);
    assert_state(pool, 0, "asleep");
    engine_block(engine, 0, BLOCK_SQUATTED);
    assert_state(pool, 0, "squatted");
    engine_block(engine, 0, BLOCK_DIRTY);
    assert_state(pool, 0, "draining");
    engine_block(engine, 0, BLOCK_ELSEWHERE);
    assert_state(pool, 0, "elsewhere");
    engine_device_health(engine, 0, HEALTH_SICK);
    assert_state(pool, 0, "sick");
    engine_block(engine, 0, BLOCK_DRAINED);
    assert_state(pool, 0, "drained");
    engine_device_gone(engine, 0);
    assert_state(pool, 0, "gone");
    assert_int_equal(slot_of(pool, 0).blocks, SLOT_BLOCK_SQUATTED | SLOT_BLOCK_DIRTY |
                                                  SLOT_BLOCK_ELSEWHERE | SLOT_BLOCK_DRAINED);
    engine_block(engine, 1, BLOCK_ASLEEP);
    assert_int_equal(slot_of(pool, 1).blocks, 0);
}

static void a_drain_is_shown_with_its_reason(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    assert_int_equal(device_drain_set(pool, 1, "dust", optional_number_of(STAGE_USER), NULL), 0);
    assert_string_equal(slot_of(pool, 1).reason, "dust");
    assert_int_equal(slot_of(pool, 1).reason_uid.value, STAGE_USER);
    assert_int_equal(slot_of(pool, 1).reason_time, STAGE_NOW);
    assert_null(slot_of(pool, 0).reason);
    assert_int_equal(slot_of(pool, 0).reason_time, 0);
    assert_false(slot_of(pool, 0).name_uid.known || slot_of(pool, 0).name_pid.known);
}

static struct lease_info lease_of(struct pool *pool, const struct job *job)
{
    struct lease_view view;
    struct lease_info item;

    assert_true(engine_get_lease(pool->engine, job->by_lease.id, &view));
    assert_int_equal(pool_facts_fill_lease(pool, job, &view, &item), 0);
    return item;
}

static void a_lease_has_its_holder_and_devices(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *job = pool_stage_claim(stage, &(struct stage_claim){
                                                        .words = "gpus=2 time=10s priority=low",
                                                        .pid = 4711,
                                                        .command = "train --fast",
                                                        .hold = LEASE_HOLD_PROCESS,
                                                    });
    struct lease_info item = lease_of(pool, job);

    assert_int_equal(item.id, job->by_id.id);
    assert_int_equal(item.uid, STAGE_USER);
    assert_int_equal(item.pid, 4711);
    assert_string_equal(item.command, "train --fast");
    assert_int_equal(item.devices.count, 2);
    assert_true(device_id_equals(item.devices.items[1], id_of("nvidia1")));
    assert_int_equal(item.priority, PRIORITY_LOW);
    assert_int_equal(item.granted, STAGE_NOW);
    assert_true(item.expires.known);
    assert_int_equal(item.expires.value, STAGE_NOW + 10 * DURATION_SECOND);
    assert_false(item.force_at.known || item.idle.known);
    assert_int_equal(item.end, 0);
    assert_false(item.draining || item.preparing || item.adopted || item.idle_warned);
    vector_finish(&item.devices);
}

/* Limits and reports are about the person, whichever uid the person's container has. */
static void a_lease_of_a_container_is_its_owners(void **state)
{
    struct pool_stage *stage = *state;
    struct subordinate_range *range = vector_append(&stage->pool.accounts.ranges);
    struct lease_info item;

    assert_non_null(range);
    *range = (struct subordinate_range){.first = 100000, .last = 165535, .owner = STAGE_USER};
    item = lease_of(&stage->pool, pool_stage_claim(stage, &(struct stage_claim){.uid = 100007}));
    assert_int_equal(item.uid, STAGE_USER);
    vector_finish(&item.devices);
}

static void a_lease_shows_how_it_ends(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.hold = LEASE_HOLD_NOTHING});
    struct lease_watch *guard = job_lease_watch(pool, job);
    struct lease_info item;

    guard->force_at = STAGE_NOW + 3;
    guard->idle_warned = guard->is_idle = true;
    guard->used_at = STAGE_NOW - 70;
    guard->judged_time = 9;
    guard->idle_time = 8;
    job->end = LEASE_END_IDLE;
    job->state = JOB_DRAINING;
    job->adopted = job->unprepared = true;
    item = lease_of(pool, job);
    assert_int_equal(item.pid, 0);
    assert_false(item.expires.known);
    assert_int_equal(item.force_at.value, STAGE_NOW + 3);
    assert_int_equal(item.idle.value, 70);
    assert_int_equal(item.judged_time, 9);
    assert_int_equal(item.idle_time, 8);
    assert_int_equal(item.end, LEASE_END_IDLE);
    assert_true(item.draining && item.preparing && item.adopted && item.idle_warned);
    vector_finish(&item.devices);
}

/* A lease on fewer devices than it has would be wrong. */
static void without_memory_there_is_no_lease(void **state)
{
    struct pool_stage *stage = *state;
    const struct job *job = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    struct lease_view view;
    struct lease_info item;
    int code;

    assert_true(engine_get_lease(stage->pool.engine, job->by_lease.id, &view));
    failing_allocator_start(1);
    code = pool_facts_fill_lease(&stage->pool, job, &view, &item);
    assert_true(failing_allocator_stop());
    assert_int_equal(code, BERTH_ERROR_MEMORY);
    assert_int_equal(item.devices.count, 0);
}

static size_t encoded_size(const struct wire_message *message)
{
    struct text packet = {0};
    size_t size;

    assert_int_equal(wire_encode(message, &packet, NULL), 0);
    size = packet.length;
    text_finish(&packet);
    return size;
}

/* Functions that fill messages rely on the estimates: a message that is too long is not sent. */
static void the_estimates_are_no_less_than_the_truth(void **state)
{
    char text[200];
    struct device_process process = {
        .pid = UINT64_MAX,
        .uid = optional_number_of(UINT32_MAX),
        .memory = optional_number_of(UINT64_MAX),
        .command = text,
        .container = text,
        .lease = UINT64_MAX,
        .started = INT64_MAX,
        .draws = true,
        .squats = true,
    };
    char *nodes[] = {text, text};
    struct device device = {
        .id = {.vendor = VENDOR_INTEL, .index = 999999, .mig = 999999},
        .name = text,
        .uuid = text,
        .parent = text,
        .cpus = text,
        .health_reason = text,
        .pci = {.known = true, .domain = 0xffff, .bus = 0xff, .device = 31, .function = 7},
        .memory_total = optional_number_of(UINT64_MAX),
        .numa = optional_number_of(1000),
        .minor = optional_number_of(1000),
        .tiles = optional_number_of(16),
        .health = HEALTH_SICK,
        .nodes = {.items = nodes, .count = 2},
        .processes = {.items = &process, .count = 1},
    };
    struct slot_info slot = {.device = &device};
    struct wire_message page = {.type = WIRE_PAGE};
    size_t empty = encoded_size(&page);
    size_t with_device;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    page.snapshot.slots.items = &slot;
    page.snapshot.slots.count = 1;
    with_device = encoded_size(&page) - empty;
    assert_in_range(with_device, 1, pool_facts_device_size(&device));
    device.processes.count = 0;
    assert_in_range(with_device - (encoded_size(&page) - empty), 1,
                    pool_facts_process_size(&process));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_counts_are_of_this_moment, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_lease_decides_about_the_state, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(the_first_reason_is_the_state, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_drain_is_shown_with_its_reason, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_lease_has_its_holder_and_devices, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_lease_of_a_container_is_its_owners, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(a_lease_shows_how_it_ends, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(without_memory_there_is_no_lease, begin, pool_stage_end),
        cmocka_unit_test(the_estimates_are_no_less_than_the_truth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
