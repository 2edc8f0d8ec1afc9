/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of the leases for the rules of processes/process_attribution.h.
 */
#include "support/unit.h"

#include "daemon/leases/process_leases.h"

#include "support/daemons/device_processes.h"
#include "support/daemons/pool_stage.h"

static int begin(void **state)
{
    *state = pool_stage_make(&(struct pool_stage_settings){.devices = "nvidia0,nvidia1"});
    return 0;
}

/* A report with one process on the device. */
static struct device_list report_of(const char *id, const struct device_process *process)
{
    struct device_list found = {0};
    struct device *device = vector_append(&found);

    assert_non_null(device);
    device->id = id_of(id);
    add_process(&device->processes, process);
    return found;
}

/* Returns the lease that the process has by the pool's leases. */
static uint64_t join(struct pool *pool, const char *id, const struct device_process *process)
{
    struct device_list found = report_of(id, process);
    uint64_t lease;

    process_leases_join(pool, &found);
    lease = found.items[0].processes.items[0].lease;
    device_list_finish(&found);
    return lease;
}

static void a_holder_and_its_descendants_have_the_lease(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const uint32_t ancestors[] = {5000, 4711, 1};
    const struct job *job =
        pool_stage_claim(stage, &(struct stage_claim){.words = "device=nvidia0", .pid = 4711});
    struct device_process holder = {.pid = 4711, .uid = optional_number_of(STAGE_USER)};
    struct device_process child = {
        .pid = 6000,
        .uid = optional_number_of(STAGE_USER),
        .ancestors = ancestors,
        .ancestor_count = COUNT(ancestors),
    };

    assert_int_equal(join(pool, "nvidia0", &holder), job->by_id.id);
    assert_int_equal(join(pool, "nvidia0", &child), job->by_id.id);
    /* The lease is on another device, and a device that the engine does not know has none. */
    assert_int_equal(join(pool, "nvidia1", &holder), 0);
    assert_int_equal(join(pool, "nvidia7", &holder), 0);
    /* A lease that nothing holds has no such process. */
    pool_stage_claim(stage, &(struct stage_claim){
                                .words = "device=nvidia1", .pid = 77, .hold = LEASE_HOLD_NOTHING});
    assert_int_equal(join(pool, "nvidia1", &(struct device_process){.pid = 77}), 0);
}

/* The id that users see is that of the claim, which may differ from the engine's lease. */
static void a_mark_names_the_claim(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *first = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.words = "device=nvidia0"});
    struct device_process process = {
        .pid = 6000,
        .uid = optional_number_of(STAGE_USER),
        .said_socket = (char *)STAGE_SOCKET,
        .said_lease = job->by_id.id,
    };
    struct lease_view view;

    assert_int_equal(engine_release(pool->engine, first->by_lease.id, NULL), 0);
    for (uint64_t id = job->by_id.id + 1; job->by_lease.id == 0; id++) {
        if (engine_get_lease(pool->engine, id, &view))
            job_set_lease(pool, job, id);
    }
    assert_int_not_equal(job->by_lease.id, job->by_id.id);
    assert_int_equal(join(pool, "nvidia0", &process), job->by_id.id);
    process.uid.value = STAGE_OTHER;
    assert_int_equal(join(pool, "nvidia0", &process), 0);
    process.uid.value = STAGE_USER;
    process.said_socket = (char *)"/run/other/berth.sock";
    assert_int_equal(join(pool, "nvidia0", &process), 0);
}

static void a_mark_of_an_ended_lease_counts(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct device_process process = {
        .pid = 6000,
        .uid = optional_number_of(STAGE_USER),
        .said_socket = (char *)STAGE_SOCKET,
        .said_lease = 99,
    };

    assert_int_equal(join(pool, "nvidia0", &process), 0);
    job_remember_ended(pool, &(struct ended_job){.id = 99, .uid = STAGE_OTHER});
    assert_int_equal(join(pool, "nvidia0", &process), 0);
    job_remember_ended(pool, &(struct ended_job){.id = 98, .uid = STAGE_USER});
    process.said_lease = 98;
    assert_int_equal(join(pool, "nvidia0", &process), 98);
}

/* The uid in a container is no user's; its owner is found by /etc/subuid. */
static void a_subordinate_uid_acts_for_its_owner(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct subordinate_range *range = vector_append(&pool->accounts.ranges);
    const struct job *job =
        pool_stage_claim(stage, &(struct stage_claim){.words = "device=nvidia0"});
    struct device_process process = {
        .pid = 6000,
        .uid = optional_number_of(100033),
        .said_socket = (char *)STAGE_SOCKET,
        .said_lease = job->by_id.id,
    };

    assert_non_null(range);
    *range = (struct subordinate_range){.first = 100000, .last = 165535, .owner = STAGE_USER};
    assert_int_equal(join(pool, "nvidia0", &process), job->by_id.id);
    range->owner = STAGE_OTHER;
    assert_int_equal(join(pool, "nvidia0", &process), 0);
    /* The owner in the probe's report counts more. */
    process.owner = optional_number_of(STAGE_USER);
    assert_int_equal(join(pool, "nvidia0", &process), job->by_id.id);
}

/* An adopted process may have begun a container, whose processes are no children of it. */
static void an_adopted_container_has_the_lease(void **state)
{
    static const char words[] = "device=nvidia0 sharing=time-slice share=500";
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.words = words});
    struct device_process process = {
        .pid = 6000, .uid = optional_number_of(STAGE_USER), .container = (char *)"docker-12"};

    pool_stage_claim(stage, &(struct stage_claim){.words = words});
    assert_int_equal(join(pool, "nvidia0", &process), 0);
    job_keep_container(pool, job, "docker-12");
    assert_int_equal(join(pool, "nvidia0", &process), job->by_id.id);
    process.container = (char *)"docker-13";
    assert_int_equal(join(pool, "nvidia0", &process), 0);
}

/* A process that wiped its environment keeps the lease that it was seen with, also after its end.
 */
static void a_process_keeps_an_ended_lease(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *other = pool_stage_claim(
        stage, &(struct stage_claim){.words = "device=nvidia1", .uid = STAGE_OTHER});
    struct device_process process = {
        .pid = 6000, .uid = optional_number_of(STAGE_USER), .lease = 4711};

    put_process(pool->engine, 0, &process);
    assert_int_equal(join(pool, "nvidia0", &process), 4711);
    process.lease = other->by_id.id;
    put_process(pool->engine, 0, &process);
    assert_int_equal(join(pool, "nvidia0", &process), 0);
}

/* After a grant or an end, the processes of the last report get other leases. */
static void processes_are_joined_again(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct device_process process = {.pid = 4711, .uid = optional_number_of(STAGE_USER)};
    const struct job *job;

    put_process(pool->engine, 0, &process);
    process_leases_join_again(pool, 0);
    assert_int_equal(engine_device_processes(pool->engine, 0)->items[0].lease, 0);
    job = pool_stage_claim(stage, &(struct stage_claim){.words = "device=nvidia0", .pid = 4711});
    process_leases_join_again(pool, 0);
    assert_int_equal(engine_device_processes(pool->engine, 0)->items[0].lease, job->by_id.id);
}

static void a_process_lingers_when_its_lease_is_over(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){0});
    struct device_process process = {.pid = 6000};

    assert_false(process_leases_lingers(pool, &process));
    process.lease = job->by_id.id;
    assert_false(process_leases_lingers(pool, &process));
    job->state = JOB_ENDING;
    assert_false(process_leases_lingers(pool, &process));
    job->state = JOB_LOOKING;
    assert_true(process_leases_lingers(pool, &process));
    job->state = JOB_DRAINING;
    assert_true(process_leases_lingers(pool, &process));
    process.lease = 12345;
    assert_true(process_leases_lingers(pool, &process));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_holder_and_its_descendants_have_the_lease, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(a_mark_names_the_claim, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_mark_of_an_ended_lease_counts, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_subordinate_uid_acts_for_its_owner, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(an_adopted_container_has_the_lease, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_process_keeps_an_ended_lease, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(processes_are_joined_again, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_process_lingers_when_its_lease_is_over, begin,
                                        pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
