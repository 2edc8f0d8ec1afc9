/* SPDX-License-Identifier: Apache-2.0
 *
 * When a holder is warned of its time limit, and when a device counts as used.
 */
#include "support/unit.h"

#include "daemon/leases/lease_warnings.h"

#include "base/count.h"
#include "base/text/quantity.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/reader_events.h"
#include "engine/engine.h"
#include "model/machine/device.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"

static void warnings_come_in_time(void **state)
{
    static const struct {
        int64_t length;
        int64_t before;
        int64_t wanted; /* the warning, before the end; 0: none */
    } rows[] = {
        {DURATION_HOUR, 5 * DURATION_MINUTE, 5 * DURATION_MINUTE},
        {20 * DURATION_MINUTE, 5 * DURATION_MINUTE, 5 * DURATION_MINUTE},
        {20 * DURATION_MINUTE - 4, 5 * DURATION_MINUTE, 5 * DURATION_MINUTE - 1},
        {4 * DURATION_MINUTE, 5 * DURATION_MINUTE, DURATION_MINUTE},
        {4 * DURATION_SECOND, 5 * DURATION_MINUTE, DURATION_SECOND},
        {2 * DURATION_SECOND, 5 * DURATION_MINUTE, DURATION_SECOND},
        {DURATION_SECOND, 5 * DURATION_MINUTE, 0},
        {1, 5 * DURATION_MINUTE, 0},
        {DURATION_HOUR, 0, 0},
        {10 * DURATION_SECOND, 1, 1},
    };
    const int64_t granted = 1000 * DURATION_HOUR;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t expires = granted + rows[i].length;

        assert_int_equal(lease_warnings_limit_time(granted, expires, rows[i].before),
                         rows[i].wanted == 0 ? TIME_NEVER : expires - rows[i].wanted);
    }
}

static void no_limit_no_warning(void **state)
{
    (void)state;
    assert_int_equal(lease_warnings_limit_time(0, TIME_NEVER, DURATION_MINUTE), TIME_NEVER);
    assert_int_equal(lease_warnings_limit_time(DURATION_HOUR, TIME_NEVER, DURATION_MINUTE),
                     TIME_NEVER);
    assert_int_equal(lease_warnings_limit_time(0, TIME_NEVER - 1, DURATION_MINUTE),
                     TIME_NEVER - 1 - DURATION_MINUTE);
}

static void what_counts_as_use(void **state)
{
    struct device device = {.health = HEALTH_OK};

    (void)state;
    assert_int_equal(lease_warnings_use_of(&device, true, true), DEVICE_USED);
    assert_int_equal(lease_warnings_use_of(&device, true, false), DEVICE_USED);
    assert_int_equal(lease_warnings_use_of(&device, false, true), DEVICE_UNUSED);
    assert_int_equal(lease_warnings_use_of(&device, false, false), DEVICE_USE_UNKNOWN);
    device.load.utilization = load_figure_sampled(0, 1);
    assert_int_equal(lease_warnings_use_of(&device, true, true), DEVICE_UNUSED);
    assert_int_equal(lease_warnings_use_of(&device, false, false), DEVICE_UNUSED);
    device.load.utilization = load_figure_sampled(1, 1);
    assert_int_equal(lease_warnings_use_of(&device, false, true), DEVICE_USED);
}

static void what_cannot_be_known(void **state)
{
    struct device device = {.load.utilization = load_figure_sampled(0, 1)};

    (void)state;
    assert_int_equal(lease_warnings_use_of(&device, false, true), DEVICE_UNUSED);
    device.old = true;
    assert_int_equal(lease_warnings_use_of(&device, false, true), DEVICE_USE_UNKNOWN);
    device.old = false;
    device.health = HEALTH_SICK;
    assert_int_equal(lease_warnings_use_of(&device, false, true), DEVICE_USE_UNKNOWN);
    device.health = HEALTH_OK;
    device.load.utilization.known = false;
    device.asleep = true;
    assert_int_equal(lease_warnings_use_of(&device, true, false), DEVICE_UNUSED);
}

/* ---- With a pool ---- */

static int begin(void **state)
{
    static const struct pool_part parts[] = {{handover_init, handover_finish},
                                             {lease_warnings_init, lease_warnings_finish},
                                             {reader_events_init, reader_events_finish}};
    struct pool_stage *stage = pool_stage_make(&(struct pool_stage_settings){
        .parts = parts, .part_count = COUNT(parts), .is_hardware = true});

    assert_int_equal(
        probe_poll_create(&stage->pool.probe_poll, &(struct probe_poll_settings){0}, NULL), 0);
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct pool_stage *stage = *state;

    probe_poll_destroy(stage->pool.probe_poll);
    return pool_stage_end(state);
}

static struct job *claim(struct pool_stage *stage, const struct stage_client *client,
                         const char *words)
{
    struct job *job = pool_stage_claim(
        stage, &(struct stage_claim){.words = words, .connection = client->connection});

    lease_warnings_limit(&stage->pool, job);
    return job;
}

/* The next message is a warning for this reason, with so much time left. */
#define assert_warned(client, wanted_end, wanted_left)      \
    do {                                                    \
        struct wire_message message_;                       \
        assert_message((client), WIRE_WARNING, &message_);  \
        assert_int_equal(message_.end, (wanted_end));       \
        assert_int_equal(message_.duration, (wanted_left)); \
        wire_message_finish(&message_);                     \
    } while (0)

static void a_client_is_warned_of_its_time_limit(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    claim(stage, &client, "time=3600s");
    claim(stage, &client, "time=1800s");
    claim(stage, &client, "time=7200s");
    claim(stage, &client, NULL);
    pool_stage_go_on(stage, 25 * DURATION_MINUTE - 1);
    assert_no_message(&client);
    pool_stage_go_on(stage, 1);
    assert_warned(&client, LEASE_END_EXPIRED, 5 * DURATION_MINUTE);
    assert_contains(pool_stage_log(stage), "warning id=2 uid=1000 reason=\"the time limit\"\n");
    assert_no_message(&client);
    pool_stage_go_on(stage, 30 * DURATION_MINUTE);
    assert_sent(&client, WIRE_NOTICE); /* the end of the shorter one */
    assert_warned(&client, LEASE_END_EXPIRED, 5 * DURATION_MINUTE);
    pool_stage_hang_up(stage, &client);
}

static void an_extension_moves_the_warning(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = claim(stage, &client, "time=3600s");

    assert_int_equal(
        engine_extend(pool->engine, job->by_lease.id, STAGE_NOW + 2 * DURATION_HOUR, NULL), 0);
    lease_warnings_limit(pool, job);
    pool_stage_go_on(stage, DURATION_HOUR);
    assert_no_message(&client);
    assert_int_equal(engine_extend(pool->engine, job->by_lease.id, TIME_NEVER, NULL), 0);
    lease_warnings_limit(pool, job);
    pool_stage_go_on(stage, 2 * DURATION_HOUR);
    assert_no_message(&client);
    pool_stage_hang_up(stage, &client);
}

/* A client that comes back after a restart is warned then, if the time has come. */
static void a_restored_client_is_warned_when_it_is_back(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.words = "time=3600s"});

    job->restored = true;
    lease_warnings_limit(pool, job);
    pool_stage_go_on(stage, 57 * DURATION_MINUTE);
    assert_string_equal(pool_stage_log(stage), "");
    job_attach(job, client.connection, 1);
    lease_warnings_limit(pool, job);
    assert_no_message(&client);
    pool_stage_go_on(stage, 0);
    assert_warned(&client, LEASE_END_EXPIRED, 3 * DURATION_MINUTE);
    pool_stage_hang_up(stage, &client);
}

static void an_ending_lease_is_not_warned(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = claim(stage, &client, "time=3600s");

    job->end = LEASE_END_STOPPED;
    pool_stage_go_on(stage, 57 * DURATION_MINUTE);
    assert_no_message(&client);
    job_free(&stage->pool, job);
    pool_stage_go_on(stage, DURATION_HOUR);
    pool_stage_hang_up(stage, &client);
}

/* ---- Idle leases ---- */

/* Sets how busy the first device is, as a report does. */
static void set_use(struct pool *pool, uint64_t percent)
{
    engine_set_load(pool->engine, 0,
                    &(struct load){.utilization = load_figure_sampled(percent, 1)});
}

/* Checks the leases this often for so long. */
static void check_for(struct pool_stage *stage, int64_t duration)
{
    for (int64_t done = 0; done < duration; done += 10 * DURATION_SECOND) {
        pool_stage_go_on(stage, 10 * DURATION_SECOND);
        lease_warnings_check(&stage->pool);
    }
}

static void an_idle_lease_is_warned_once_and_taken_back(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job;

    pool->rules.idle_warning = 30 * DURATION_MINUTE;
    pool->rules.idle_reclaim = 60 * DURATION_MINUTE;
    job = claim(stage, &client, NULL);
    assert_true(lease_warnings_may_come(pool, job));
    set_use(pool, 0);
    lease_warnings_check(pool);
    check_for(stage, 30 * DURATION_MINUTE - 10 * DURATION_SECOND);
    assert_no_message(&client);
    assert_int_equal(lease_warnings_idle_time(pool, job).value,
                     30 * DURATION_MINUTE - 10 * DURATION_SECOND);
    check_for(stage, 10 * DURATION_SECOND);
    assert_warned(&client, LEASE_END_IDLE, 30 * DURATION_MINUTE);
    assert_true(job->guard->idle_warned);
    check_for(stage, 30 * DURATION_MINUTE - 10 * DURATION_SECOND);
    assert_no_message(&client);
    check_for(stage, 10 * DURATION_SECOND);
    assert_sent(&client, WIRE_NOTICE);
    assert_int_equal(job->end, LEASE_END_IDLE);
    pool_stage_hang_up(stage, &client);
}

/* Each use begins the time anew. */
static void a_lease_that_is_used_again_has_its_time_again(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct job *job;

    pool->rules.idle_warning = 30 * DURATION_MINUTE;
    job = claim(stage, &client, NULL);
    set_use(pool, 0);
    lease_warnings_check(pool);
    check_for(stage, 30 * DURATION_MINUTE);
    assert_warned(&client, LEASE_END_IDLE, 0);
    set_use(pool, 7);
    check_for(stage, 10 * DURATION_SECOND);
    assert_false(lease_warnings_idle_time(pool, job).known);
    assert_false(job->guard->idle_warned);
    set_use(pool, 0);
    check_for(stage, 30 * DURATION_MINUTE - 10 * DURATION_SECOND);
    assert_no_message(&client);
    check_for(stage, 10 * DURATION_SECOND);
    assert_warned(&client, LEASE_END_IDLE, 0);
    /* The use of all this time is known, and so is the part without use. */
    assert_int_equal(job->guard->judged_time, 60 * DURATION_MINUTE + 10 * DURATION_SECOND);
    assert_int_equal(job->guard->idle_time, 60 * DURATION_MINUTE);
    pool_stage_hang_up(stage, &client);
}

/* A suspended machine does not use its devices, but no user is idle then. */
static void time_without_checks_is_not_idle(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct job *job;

    pool->rules.idle_warning = 30 * DURATION_MINUTE;
    job = claim(stage, &client, NULL);
    set_use(pool, 0);
    lease_warnings_check(pool);
    check_for(stage, 20 * DURATION_MINUTE);
    pool_stage_go_on(stage, 10 * DURATION_HOUR);
    lease_warnings_check(pool);
    assert_no_message(&client);
    assert_int_equal(lease_warnings_idle_time(pool, job).value, 20 * DURATION_MINUTE);
    assert_int_equal(job->guard->judged_time, 20 * DURATION_MINUTE);
    check_for(stage, 10 * DURATION_MINUTE);
    assert_warned(&client, LEASE_END_IDLE, 0);
    pool_stage_hang_up(stage, &client);
}

/* An unknown use is no reason to take a lease away. */
static void an_unknown_use_is_no_idleness(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct job *job;

    pool->rules.idle_reclaim = DURATION_MINUTE;
    job = claim(stage, &client, NULL);
    set_use(pool, 0);
    engine_device_gone(pool->engine, 0);
    lease_warnings_check(pool);
    check_for(stage, 10 * DURATION_MINUTE);
    assert_int_equal(job->end, 0);
    engine_device_back(pool->engine, 0);
    engine_device_mark_old(pool->engine, 0);
    check_for(stage, 10 * DURATION_MINUTE);
    assert_int_equal(job->end, 0);
    assert_int_equal(job->guard->judged_time, 0);
    pool_stage_hang_up(stage, &client);
}

/* A holder whose process is unknown may be one that the probe cannot see. */
static void an_unknown_process_may_use_a_device(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.uid = STAGE_OWNER});

    pool->rules.idle_reclaim = DURATION_MINUTE;
    job->holder->pid = 0;
    lease_warnings_check(pool);
    check_for(stage, 10 * DURATION_MINUTE);
    assert_int_equal(job->end, 0);
    assert_int_equal(job->guard->judged_time, 0);
}

/* The use before the start of this daemon is unknown. */
static void time_before_the_start_is_not_idle(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct job *job =
        pool_stage_claim(stage, &(struct stage_claim){.connection = client.connection});

    set_use(pool, 0);
    pool_stage_go_on(stage, 10 * DURATION_HOUR);
    lease_warnings_finish(pool);
    assert_int_equal(lease_warnings_init(pool, NULL), 0);
    pool_stage_go_on(stage, 20 * DURATION_SECOND);
    lease_warnings_check(pool);
    assert_int_equal(job->guard->judged_time, 20 * DURATION_SECOND);
    assert_int_equal(lease_warnings_idle_time(pool, job).value, 20 * DURATION_SECOND);
    pool_stage_hang_up(stage, &client);
}

/* A lease of several devices is used if one of them is. */
static void one_used_device_is_enough(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct job *job;

    pool->rules.idle_reclaim = DURATION_MINUTE;
    job = claim(stage, &client, "gpus=2");
    set_use(pool, 0);
    engine_set_load(pool->engine, 1, &(struct load){.utilization = load_figure_sampled(99, 1)});
    lease_warnings_check(pool);
    check_for(stage, 10 * DURATION_MINUTE);
    assert_int_equal(job->end, 0);
    pool_stage_hang_up(stage, &client);
}

/* Processes of a lease within the lease count for it; those of another lease do not. */
static void processes_show_the_use(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_OWNER);
    struct device_process process = {.pid = 6000};
    struct job *job = pool_stage_claim(
        stage, &(struct stage_claim){.uid = STAGE_OWNER, .connection = client.connection});
    const struct job *inner =
        pool_stage_claim(stage, &(struct stage_claim){.uid = STAGE_OWNER, .parent = job->by_id.id});
    const struct job *other = pool_stage_claim(stage, &(struct stage_claim){0});

    pool->rules.idle_warning = DURATION_MINUTE;
    process.lease = inner->by_id.id;
    put_process(pool->engine, 0, &process);
    lease_warnings_check(pool);
    check_for(stage, 10 * DURATION_MINUTE);
    assert_no_message(&client);
    assert_int_equal(job->guard->idle_time, 0);
    process.lease = 0;
    put_process(pool->engine, 0, &process);
    check_for(stage, 10 * DURATION_MINUTE);
    assert_no_message(&client);
    process.lease = other->by_id.id;
    put_process(pool->engine, 0, &process);
    check_for(stage, DURATION_MINUTE);
    assert_warned(&client, LEASE_END_IDLE, 0);
    pool_stage_hang_up(stage, &client);
}

/* Leases that must not be judged: within another, ending, in preparation, and of an inventory. */
static void some_leases_are_not_judged(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = claim(stage, &client, NULL);
    const struct job *inner =
        pool_stage_claim(stage, &(struct stage_claim){.parent = job->by_id.id});
    struct probe_poll *poll = pool->probe_poll;

    pool->rules.idle_reclaim = DURATION_MINUTE;
    set_use(pool, 0);
    job->unprepared = true;
    check_for(stage, 10 * DURATION_MINUTE);
    assert_int_equal(job->end, 0);
    assert_null(inner->guard);
    assert_false(lease_warnings_may_come(pool, inner));
    pool->probe_poll = NULL;
    assert_false(lease_warnings_may_come(pool, job));
    pool->probe_poll = poll;
    pool->rules.idle_reclaim = 0;
    assert_false(lease_warnings_may_come(pool, job));
    pool_stage_hang_up(stage, &client);
}

#define WITH_POOL(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings_come_in_time),
        cmocka_unit_test(no_limit_no_warning),
        cmocka_unit_test(what_counts_as_use),
        cmocka_unit_test(what_cannot_be_known),
        WITH_POOL(a_client_is_warned_of_its_time_limit),
        WITH_POOL(an_extension_moves_the_warning),
        WITH_POOL(a_restored_client_is_warned_when_it_is_back),
        WITH_POOL(an_ending_lease_is_not_warned),
        WITH_POOL(an_idle_lease_is_warned_once_and_taken_back),
        WITH_POOL(a_lease_that_is_used_again_has_its_time_again),
        WITH_POOL(time_without_checks_is_not_idle),
        WITH_POOL(an_unknown_use_is_no_idleness),
        WITH_POOL(an_unknown_process_may_use_a_device),
        WITH_POOL(time_before_the_start_is_not_idle),
        WITH_POOL(one_used_device_is_enough),
        WITH_POOL(processes_show_the_use),
        WITH_POOL(some_leases_are_not_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
