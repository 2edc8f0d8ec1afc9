/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/probe_events.h"

#include "daemon/leases/handover.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/pool_stage.h"

static int begin(void **state)
{
    struct pool_stage *stage = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1",
        .parts = pool_stage_all,
        .part_count = POOL_STAGE_ALL,
        .is_hardware = true,
        .slots = 8,
    });

    assert_int_equal(probe_events_open(&stage->pool, NULL), 0);
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct pool_stage *stage = *state;

    probe_poll_destroy(stage->pool.probe_poll);
    return pool_stage_end(state);
}

static const struct probe_poll_events *events_of(const struct pool_stage *stage)
{
    return &stage->pool.probe_poll->settings.events;
}

static struct machine_report report_of(const char *ids)
{
    struct machine_report report = {.listed = UINT32_MAX};
    struct host *host = vector_append(&report.machine.hosts);

    assert_non_null(host);
    *host = (struct host){0};
    machine_add_ids(&report.machine, ids);
    return report;
}

/* Lets the client follow the devices' loads. */
static void follow_loads(struct pool *pool, const struct stage_client *client)
{
    struct watcher *watcher = watcher_new(client->connection, 77, NULL, NULL);

    watcher->follower = (struct stream_follower){
        .knows_epoch = true, .mark = followers_mark(pool->followers), .kinds = WIRE_NEWS_LOAD};
    followers_add(pool->followers, &watcher->follower);
}

static void the_poll_learns_how_often_to_ask(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct probe_poll_events *events = events_of(stage);
    struct device_id_list only = {0};

    assert_ptr_equal(events->context, pool);
    assert_false(events->is_busy(pool));
    pool_stage_claim(stage, &(struct stage_claim){0});
    assert_true(events->is_busy(pool));
    assert_int_equal(events->followed_interval(pool), 0);
    assert_false(events->needs_report(pool));
    handover_need(pool, 1, HANDOVER_LOOK);
    assert_true(events->needs_report(pool));
    assert_true(events->awaits_report(pool));
    events->request(pool, &only);
    assert_int_equal(only.count, 1);
    assert_false(events->needs_report(pool));
    assert_true(events->awaits_report(pool));
    vector_finish(&only);
}

/* The poll starts before the event stream exists. */
static void without_followers_there_is_no_interval(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct followers *followers = pool->followers;

    pool->followers = NULL;
    assert_int_equal(events_of(stage)->followed_interval(pool), 0);
    pool->followers = followers;
}

/* A report ends the handover, and the device goes to the claim that waits for it, whose client is
 * told at once. */
static void a_report_grants_devices_on(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct machine_report report = report_of("nvidia0,nvidia1");

    handover_need(pool, 0, HANDOVER_LOOK);
    handover_need(pool, 1, HANDOVER_LOOK);
    pool_stage_claim(stage, &(struct stage_claim){.connection = client.connection});
    events_of(stage)->request(pool, NULL);
    assert_no_message(&client);
    assert_int_equal(events_of(stage)->take(pool, &report, NULL), 0);
    assert_sent(&client, WIRE_GRANTED);
    assert_false(handover_is_pending(pool));
    pool_stage_hang_up(stage, &client);
}

/* A report with a fault is applied as far as possible, and the pool goes on. */
static void a_report_with_a_fault_is_applied(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_report report =
        report_of("nvidia0,nvidia1,nvidia2,nvidia3,nvidia4,nvidia5,nvidia6,nvidia7,nvidia8");
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    pool_stage_claim(stage, &(struct stage_claim){.connection = client.connection});
    assert_int_equal(events_of(stage)->take(pool, &report, &error), BERTH_ERROR_LIMIT);
    assert_sent(&client, WIRE_GRANTED);
    machine_report_finish(&report);
    pool_stage_hang_up(stage, &client);
}

static struct pool *beginning;
static struct machine_report first_report;

/* Passes on the first report, as the poll does within probe_poll_begin(). */
static void pass_on_first(struct probe_poll *poll)
{
    assert_int_equal(poll->settings.events.take(beginning, &first_report, NULL), 0);
}

/* While a journal is restored nothing is granted: the holders are not watched yet. */
static void the_first_report_grants_nothing(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *waits;
    struct claim_view view;

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    waits = pool_stage_claim(stage, &(struct stage_claim){0});
    engine_pause(pool->engine);
    beginning = pool;
    first_report = report_of("nvidia0,nvidia1,nvidia2");
    pool->probe_poll->begin = pass_on_first;
    probe_events_begin(pool);
    assert_int_equal(engine_machine(pool->engine)->devices.count, 3);
    assert_true(engine_get_claim(pool->engine, waits->by_id.id, &view));
    assert_false(pool->is_restoring);
    engine_resume(pool->engine);
    assert_false(engine_get_claim(pool->engine, waits->by_id.id, &view));
    machine_report_finish(&first_report);
}

/* Without a probe, nothing waits for it, and all facts count as old. */
static void a_lost_probe_lets_claims_go_on(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *waits;
    struct claim_view view;

    handover_need(pool, 0, HANDOVER_LOOK);
    handover_need(pool, 1, HANDOVER_LOOK);
    waits = pool_stage_claim(stage, &(struct stage_claim){0});
    events_of(stage)->lost(pool);
    assert_false(engine_get_claim(pool->engine, waits->by_id.id, &view));
    assert_true(engine_machine(pool->engine)->devices.items[0].old);
    assert_int_equal(stage->continued, 0);
    /* The poll calls this afterwards, which settles the pool. */
    events_of(stage)->answered(pool);
    assert_int_equal(stage->continued, 1);
}

/* Loads change even if nothing is decided. */
static void each_report_and_its_loss_are_news(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct machine_report report = report_of("nvidia0,nvidia1");

    follow_loads(pool, &client);
    pool_stage_end_turn(stage);
    assert_no_message(&client);
    assert_int_equal(events_of(stage)->take(pool, &report, NULL), 0);
    pool_stage_end_turn(stage);
    assert_sent(&client, WIRE_NEWS);
    follow_loads(pool, &client);
    events_of(stage)->lost(pool);
    pool_stage_end_turn(stage);
    assert_sent(&client, WIRE_NEWS);
    pool_stage_hang_up(stage, &client);
}

static void only_claims_for_processes_need_a_report_of_ignored_squatters(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    assert_false(probe_events_must_wait(pool, false));
    pool->probe_poll->must_wait = true;
    assert_true(probe_events_must_wait(pool, false));
    assert_false(pool->probe_poll->last_anew);
    assert_true(probe_events_must_wait(pool, true));
    assert_true(pool->probe_poll->last_anew);
    pool->rules.squatters = SQUATTING_IGNORED;
    assert_false(probe_events_must_wait(pool, false));
    assert_true(probe_events_must_wait(pool, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_poll_learns_how_often_to_ask, begin, end),
        cmocka_unit_test_setup_teardown(without_followers_there_is_no_interval, begin, end),
        cmocka_unit_test_setup_teardown(a_report_grants_devices_on, begin, end),
        cmocka_unit_test_setup_teardown(a_report_with_a_fault_is_applied, begin, end),
        cmocka_unit_test_setup_teardown(the_first_report_grants_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_lost_probe_lets_claims_go_on, begin, end),
        cmocka_unit_test_setup_teardown(each_report_and_its_loss_are_news, begin, end),
        cmocka_unit_test_setup_teardown(
            only_claims_for_processes_need_a_report_of_ignored_squatters, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
