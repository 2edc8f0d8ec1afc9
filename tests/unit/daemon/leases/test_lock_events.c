/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/lock_events.h"

#include <string.h>

#include "daemon/leases/handover.h"
#include "daemon/leases/pool_news.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/played_locks.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/pool_stage.h"

static struct pool_stage *make(bool is_own, bool is_hardware)
{
    static const struct pool_part parts[] = {{handover_init, handover_finish},
                                             {pool_news_init, pool_news_finish}};
    struct pool_stage *stage = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1",
        .parts = parts,
        .part_count = COUNT(parts),
        .is_own = is_own,
        .is_hardware = is_hardware,
        .slots = 8,
    });
    struct pool *pool = &stage->pool;

    if (is_hardware)
        assert_int_equal(
            probe_poll_create(&pool->probe_poll, &(struct probe_poll_settings){0}, NULL), 0);
    pool->inventory_key = 0x1234;
    device_locks_destroy(pool->device_locks);
    assert_int_equal(lock_events_init(pool, NULL), 0);
    return stage;
}

static int begin(void **state)
{
    *state = make(false, true);
    return 0;
}

static int begin_own(void **state)
{
    *state = make(true, true);
    return 0;
}

static int begin_inventory(void **state)
{
    *state = make(false, false);
    return 0;
}

static int end(void **state)
{
    struct pool_stage *stage = *state;

    probe_poll_destroy(stage->pool.probe_poll);
    return pool_stage_end(state);
}

static const struct device_locks_events *events_of(const struct pool_stage *stage)
{
    return &stage->pool.device_locks->settings.events;
}

static uint32_t blocks_of(const struct pool_stage *stage, uint32_t slot)
{
    struct slot_view view;

    engine_get_slot(stage->pool.engine, slot, &view);
    return view.blocks;
}

/* Only the machine's daemon keeps all names; the hardware has one scope, each inventory its own. */
static void the_scope_is_the_machine_or_the_inventory(void **state)
{
    struct pool_stage *stage = *state;
    const struct device_locks *locks = stage->pool.device_locks;

    assert_null(locks->settings.scope);
    assert_true(locks->settings.keeps_all);
    assert_int_equal(locks->settings.uid, STAGE_OWNER);
    assert_int_equal(locks->added, 2);
    assert_int_equal(locks->settings.max, 8);
}

static void an_inventory_is_a_scope(void **state)
{
    struct pool_stage *stage = *state;

    assert_string_equal(stage->pool.device_locks->scope, "0000000000001234");
    assert_int_equal(stage->pool.device_locks->settings.max, 2);
}

static void a_users_own_daemon_keeps_no_names(void **state)
{
    struct pool_stage *stage = *state;

    assert_false(stage->pool.device_locks->settings.keeps_all);
}

/* A leased device, or one in handover, is not let go to another pool. */
static void leased_and_dirty_devices_are_kept(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct device_locks_events *events = events_of(stage);

    assert_false(events->is_leased(pool, 0));
    pool_stage_claim(stage, &(struct stage_claim){.words = "device=nvidia0"});
    assert_true(events->is_leased(pool, 0));
    assert_false(events->is_leased(pool, 1));
    engine_block(pool->engine, 1, BLOCK_DRAINED);
    assert_false(events->is_leased(pool, 1));
    engine_block(pool->engine, 1, BLOCK_DIRTY);
    assert_true(events->is_leased(pool, 1));
}

/* While it is searched what a lease has left, another pool that asks waits for the result. */
static void ending_leases_let_other_pools_wait(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct device_locks_events *events = events_of(stage);
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.words = "device=nvidia0"});

    assert_false(events->is_ending(pool, 0));
    list_append(&pool->looks, &job_lease_watch(pool, job)->in_looks);
    assert_true(events->is_ending(pool, 0));
    assert_false(events->is_ending(pool, 1));
    list_remove(&job->guard->in_looks);
    assert_false(events->is_ending(pool, 0));
    handover_need(pool, 1, HANDOVER_LOOK);
    assert_true(events->is_ending(pool, 1));
    /* A process that is known to be there may stay for long. */
    handover_need(pool, 1, HANDOVER_LINGERS);
    assert_false(events->is_ending(pool, 1));
}

/* A user who passes a name from process to process all day does not fill the log. */
static void a_flood_of_holders_is_not_logged(void **state)
{
    struct pool_stage *stage = *state;
    struct device_lock_holder holder = {true, STAGE_OTHER, 0, true};
    size_t lines = 0;

    for (holder.pid = 1; holder.pid <= 1000; holder.pid++)
        events_of(stage)->holder_changed(&stage->pool, 1, &holder);
    for (const char *at = pool_stage_log(stage); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_in_range(lines, 1, 500);
    /* That the name is ours again is logged all the same. */
    events_of(stage)->holder_changed(&stage->pool, 1, NULL);
    assert_contains(pool_stage_log(stage), "name what=ours device=nvidia1\n");
}

static void devices_are_wanted_while_something_waits(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct device_locks_events *events = events_of(stage);
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct list_link deferred = {0};
    struct cached_request *cached;
    struct request request;
    struct watcher *watcher;

    assert_false(events->is_wanted(pool));
    /* A lease wants nothing more, nor does a client that only watches. */
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    watcher = watcher_new(client.connection, 1, NULL, NULL);
    assert_false(events->is_wanted(pool));
    watcher_free(watcher);
    list_append(&pool->deferred_claims, &deferred);
    assert_true(events->is_wanted(pool));
    list_remove(&deferred);
    request_init(&request);
    assert_int_equal(request_cache_open(pool, &request, &(struct requester){0}, &cached, NULL), 0);
    watcher = watcher_new(client.connection, 1, cached, NULL);
    request_cache_release(pool, cached);
    assert_true(events->is_wanted(pool));
    watcher_free(watcher);
    assert_false(events->is_wanted(pool));
    /* The engine does not count this one as pending. */
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2 opportunistic=1"});
    assert_int_equal(engine_pending(pool->engine), 0);
    assert_true(events->is_wanted(pool));
    pool_stage_hang_up(stage, &client);
}

/* The name that a user took blocks a device only while a process of that user is on it. */
static void a_user_is_on_a_device_by_a_process(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct device_locks_events *events = events_of(stage);
    struct device_process process = {.pid = 6000, .uid = optional_number_of(STAGE_USER)};

    put_process(pool->engine, 0, &process);
    assert_true(events->is_used_by(pool, 0, STAGE_USER));
    assert_false(events->is_used_by(pool, 0, STAGE_OTHER));
    assert_false(events->is_used_by(pool, 1, STAGE_USER));
    process.uid = (struct optional_number){0};
    put_process(pool->engine, 0, &process);
    assert_false(events->is_used_by(pool, 0, STAGE_USER));
    assert_false(events->is_used_by(pool, 0, 0));
}

/* A device that another pool had is granted after a report of the processes on it. */
static void a_device_of_another_pool_is_looked_at_first(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct device_locks_events *events = events_of(stage);

    events->unblock(pool, 0);
    assert_int_equal(blocks_of(stage, 0), 0);
    assert_false(handover_is_pending(pool));
    events->block(pool, 0);
    assert_int_equal(blocks_of(stage, 0), BLOCK_ELSEWHERE);
    events->unblock(pool, 0);
    assert_int_equal(blocks_of(stage, 0), BLOCK_DIRTY);
    assert_true(handover_is_unasked(pool));
    pool->probe_poll->answers = false;
    events->block(pool, 1);
    events->unblock(pool, 1);
    assert_int_equal(blocks_of(stage, 1), 0);
}

/* The machine's log names the process that took a device's name. */
static void the_holder_of_a_name_is_logged(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct device_locks_events *events = events_of(stage);
    struct device_lock_holder holder = {true, STAGE_OTHER, 4711, true};
    uint64_t mark = followers_mark(pool->followers);

    events->holder_changed(pool, 1, &holder);
    assert_string_equal(pool_stage_log(stage),
                        "name what=taken device=nvidia1 uid=1001 pid=4711 blocks=yes\n");
    holder.is_known = holder.blocks = false;
    events->holder_changed(pool, 1, &holder);
    assert_string_equal(pool_stage_log(stage), "name what=taken device=nvidia1 blocks=no\n");
    events->holder_changed(pool, 1, NULL);
    assert_string_equal(pool_stage_log(stage), "name what=ours device=nvidia1\n");
    assert_int_equal(followers_mark(pool->followers), mark + 3);
}

static void users_own_daemons_log_no_names(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    uint64_t mark = followers_mark(pool->followers);

    events_of(stage)->holder_changed(pool, 1, NULL);
    assert_string_equal(pool_stage_log(stage), "");
    assert_int_equal(followers_mark(pool->followers), mark + 1);
}

static void deferred_claims_go_on_with_the_answer(void **state)
{
    struct pool_stage *stage = *state;

    events_of(stage)->answered(&stage->pool);
    assert_int_equal(stage->continued, 1);
    events_of(stage)->changed(&stage->pool);
    assert_int_equal(stage->continued, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_scope_is_the_machine_or_the_inventory, begin, end),
        cmocka_unit_test_setup_teardown(an_inventory_is_a_scope, begin_inventory, end),
        cmocka_unit_test_setup_teardown(a_users_own_daemon_keeps_no_names, begin_own, end),
        cmocka_unit_test_setup_teardown(leased_and_dirty_devices_are_kept, begin, end),
        cmocka_unit_test_setup_teardown(ending_leases_let_other_pools_wait, begin, end),
        cmocka_unit_test_setup_teardown(a_flood_of_holders_is_not_logged, begin, end),
        cmocka_unit_test_setup_teardown(devices_are_wanted_while_something_waits, begin, end),
        cmocka_unit_test_setup_teardown(a_user_is_on_a_device_by_a_process, begin, end),
        cmocka_unit_test_setup_teardown(a_device_of_another_pool_is_looked_at_first, begin, end),
        cmocka_unit_test_setup_teardown(the_holder_of_a_name_is_logged, begin, end),
        cmocka_unit_test_setup_teardown(users_own_daemons_log_no_names, begin_own, end),
        cmocka_unit_test_setup_teardown(deferred_claims_go_on_with_the_answer, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
