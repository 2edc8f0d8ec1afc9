/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/configure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/leases/squatter_watch.h"
#include "daemon/privileges.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/played_recorder.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/temporary_directory.h"

struct place {
    struct pool_stage *stage; /* of a reload */
    struct pool *pool;        /* of a start: without an engine */
    void *directory;
    char configuration[512];
    char inventory[512];
};

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static struct place *make_place(void)
{
    struct place *place = calloc(1, sizeof(*place));

    assert_non_null(place);
    assert_int_equal(temporary_directory_enter(&place->directory), 0);
    snprintf(place->configuration, sizeof(place->configuration), "%s/berth.yaml",
             (char *)place->directory);
    snprintf(place->inventory, sizeof(place->inventory), "%s/devices.json",
             (char *)place->directory);
    return place;
}

/* ---- Rules ---- */

static int begin_reading(void **state)
{
    *state = make_place();
    return 0;
}

static int end_reading(void **state)
{
    struct place *place = *state;
    int result = temporary_directory_leave(&place->directory);

    free(place);
    return result;
}

static void the_policy_of_the_rules_is_found(void **state)
{
    struct place *place = *state;
    struct rules rules;

    write_file(place->configuration, "policy: spread\ngrace: 3s\n");
    assert_int_equal(configure_read_rules(place->configuration, NULL, &rules, NULL), 0);
    assert_string_equal(rules.policy->name, "spread");
    assert_int_equal(rules.configuration.grace, 3 * DURATION_SECOND);
    configuration_finish(&rules.configuration);
    /* Without a file there are only defaults. */
    assert_int_equal(configure_read_rules("/made-up/berth.yaml", NULL, &rules, NULL), 0);
    assert_int_equal(rules.configuration.grace, 10 * DURATION_SECOND);
    configuration_finish(&rules.configuration);
}

static void an_unknown_policy_has_its_place_in_the_message(void **state)
{
    struct place *place = *state;
    struct berth_error error = BERTH_ERROR_INIT;
    struct rules rules;
    int code;

    write_file(place->configuration, "grace: 3s\npolicy: sprad\n");
    code = configure_read_rules(place->configuration, NULL, &rules, &error);
    assert_true(code < 0);
    assert_int_equal(error.code, code);
    assert_contains(error.message, "berth.yaml:2:9: ");
    assert_contains(error.message, "sprad");
}

/* ---- Starting ---- */

/* A pool as it is when its devices are read. */
static int begin_start(void **state)
{
    struct place *place = make_place();
    struct pool *pool = calloc(1, sizeof(*pool));

    assert_non_null(pool);
    pool->settings = (struct pool_settings){
        .socket = STAGE_SOCKET,
        .inventory = place->inventory,
        .configuration = place->configuration,
    };
    pool->owner = STAGE_OWNER;
    pool->launcher.socket = -1;
    pool->signals.descriptor = 77;
    pool->journal_path = copy_of("/made-up/berth.journal");
    assert_int_equal(loop_init(&pool->loop, NULL), 0);
    pool->clock = (struct pool_clock){.loop = &pool->loop};
    place->pool = pool;
    *state = place;
    return 0;
}

static int end_start(void **state)
{
    struct place *place = *state;
    struct pool *pool = place->pool;

    privileges_stop_launcher(pool);
    probe_poll_destroy(pool->probe_poll);
    engine_destroy(pool->engine);
    configuration_finish(&pool->rules);
    loop_finish(&pool->loop);
    free(pool->journal_path);
    free(pool);
    return end_reading(state);
}

static const char two_devices[] = "devices:\n  - {vendor: nvidia, index: 0, memory: 16GiB}\n"
                                  "  - {vendor: amd, index: 0, memory: 16GiB}\n";

static void an_inventory_makes_the_engine(void **state)
{
    struct place *place = *state;
    struct pool *pool = place->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    uint64_t hash;

    write_file(place->inventory, two_devices);
    write_file(place->configuration, "grace: 3s\nreserved: {amd0: nobody}\n");
    if (configure_open(pool, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(engine_machine(pool->engine)->devices.count, 2);
    assert_int_equal(pool->vendors, 1U << VENDOR_NVIDIA | 1U << VENDOR_AMD);
    assert_int_equal(pool->rules.grace, 3 * DURATION_SECOND);
    assert_null(pool->probe_poll);
    assert_int_not_equal(pool->inventory_key, 0);
    /* Another content is another set of devices, whose journal is no longer this pool's. */
    hash = pool->inventory_hash;
    assert_int_not_equal(hash, 0);
    engine_destroy(pool->engine);
    configuration_finish(&pool->rules);
    pool->engine = NULL;
    write_file(place->inventory, "devices:\n  - {vendor: nvidia, index: 0, memory: 17GiB}\n");
    assert_int_equal(configure_open(pool, &error), 0);
    assert_int_not_equal(pool->inventory_hash, hash);
}

static void a_wrong_inventory_or_configuration_is_an_error(void **state)
{
    struct place *place = *state;
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(configure_open(place->pool, &error), BERTH_ERROR_NOT_FOUND);
    write_file(place->inventory, "devices: 7\n");
    assert_true(configure_open(place->pool, &error) < 0);
    assert_contains(error.message, "devices.json:1:");
    write_file(place->inventory, two_devices);
    write_file(place->configuration, "grace: soon\n");
    assert_true(configure_open(place->pool, &error) < 0);
    assert_contains(error.message, "berth.yaml:1:");
    assert_null(place->pool->engine);
}

/* Without an inventory the devices are the hardware's; the first report is waited for. */
static void the_hardware_has_room_for_more(void **state)
{
    struct place *place = *state;
    struct pool *pool = place->pool;
    struct berth_error error = BERTH_ERROR_INIT;

    pool->settings.inventory = NULL;
    setenv("BERTH_SYSROOT", "/made-up", 1);
    if (configure_open(pool, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(engine_machine(pool->engine)->devices.count, 0);
    assert_int_equal(engine_slots_max(pool->engine), 256);
    assert_int_equal(pool->probe_poll->awaited_signals, 77);
    unsetenv("BERTH_SYSROOT");
}

/* ---- Reloading ---- */

static int begin_reload(void **state)
{
    struct place *place = make_place();

    place->stage = pool_stage_make(
        &(struct pool_stage_settings){.parts = pool_stage_all, .part_count = POOL_STAGE_ALL});
    place->stage->pool.settings.configuration = place->configuration;
    *state = place;
    return 0;
}

static int end_reload(void **state)
{
    struct place *place = *state;

    pool_stage_free(place->stage);
    return end_reading(state);
}

static void reload(struct place *place, const char *content)
{
    write_file(place->configuration, content);
    configure_reload(&place->stage->pool);
    engine_events_settle(&place->stage->pool);
}

static void a_reload_changes_the_rules(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    struct pool *pool = &stage->pool;
    int ordered = pool->recorder_process->ordered;

    reload(place, "grace: 3s\nhistory: /made-up/history.db\n");
    assert_string_equal(pool_stage_log(stage), "reloaded\n");
    assert_int_equal(pool->rules.grace, 3 * DURATION_SECOND);
    assert_int_equal(pool->recorder_process->ordered, ordered + 1);
    assert_string_equal(pool->recorder_process->order.file, "/made-up/history.db");
}

/* The old rules go on, all of them. */
static void a_bad_configuration_changes_nothing(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    struct pool *pool = &stage->pool;

    reload(place, "grace: 3s\n");
    pool_stage_log(stage);
    reload(place, "grace: 4s\npolicy: sprad\n");
    assert_contains(pool_stage_log(stage), "error what=reload reason=\"");
    assert_int_equal(pool->rules.grace, 3 * DURATION_SECOND);
    reload(place, "grace: 4s\nlimits: {each_user: -1}\n");
    assert_contains(pool_stage_log(stage), "error what=reload reason=\"");
    assert_int_equal(pool->rules.grace, 3 * DURATION_SECOND);
}

/* A new limit holds for claims that wait already, before the reload grants a device to them. */
static void limits_hold_before_devices_are_granted(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct stage_claim claim = {.words = "device=nvidia0,nvidia1",
                                      .connection = client.connection};

    engine_block(stage->pool.engine, 0, BLOCK_SQUATTED);
    engine_block(stage->pool.engine, 1, BLOCK_SQUATTED);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pool_stage_claim(stage, &claim)->state, JOB_WAITING);
    /* Nothing squats any more, so the reload frees both devices. */
    reload(place, "limits: {each_user: 1}\n");
    assert_sent(&client, WIRE_GRANTED);
    assert_no_message(&client);
    pool_stage_hang_up(stage, &client);
}

/* A reload is one change: a claim does not get, by a lifted limit, a device that is reserved. */
static void a_reload_is_one_change(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct stage_claim claim = {.words = "device=nvidia0,nvidia1",
                                      .connection = client.connection};

    reload(place, "limits: {users: {1000: 1}}\n");
    assert_int_equal(pool_stage_claim(stage, &claim)->state, JOB_HELD);
    assert_int_equal(pool_stage_claim(stage, &claim)->state, JOB_WAITING);
    reload(place, "reserved: {nvidia1: nobody}\n");
    assert_no_message(&client);
    reload(place, "");
    assert_sent(&client, WIRE_GRANTED);
    pool_stage_hang_up(stage, &client);
}

static void the_engine_gets_its_rules(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct stage_claim claim = {.words =
                                          "device=nvidia0,nvidia1 sharing=time-slice share=100",
                                      .connection = client.connection};

    engine_block(stage->pool.engine, 1, BLOCK_DRAINED);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pool_stage_claim(stage, &claim)->state, JOB_HELD);
    assert_int_equal(pool_stage_claim(stage, &claim)->state, JOB_WAITING);
    /* More tenants, but none for this user. */
    reload(place, "time_slice_tenants: 5\nreserved: {nvidia0: {users: [1001]}}\n");
    assert_no_message(&client);
    reload(place, "time_slice_tenants: 5\n");
    assert_sent(&client, WIRE_GRANTED);
    pool_stage_hang_up(stage, &client);
}

/* A device that squatters block is free once the rules ignore them. */
static void ignored_squatters_block_no_device(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    struct pool *pool = &stage->pool;
    struct slot_view view;

    put_process(pool->engine, 0,
                &(struct device_process){.pid = 999999, .command = (char *)"train"});
    squatter_watch_judge_all(pool);
    engine_get_slot(pool->engine, 0, &view);
    assert_int_equal(view.blocks, BLOCK_SQUATTED);
    reload(place, "squatters: ignore\n");
    engine_get_slot(pool->engine, 0, &view);
    assert_int_equal(view.blocks, 0);
}

/* A user who has used up a lower rate may go on at once by the new one. */
static void rates_begin_anew(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct quota *quota = client.connection->quota;

    rate_limit_take(&quota->messages, STAGE_LOOP_NOW, DURATION_HOUR);
    reload(place, "bounds: {messages: 9}\n");
    assert_true(rate_limit_is_full(&quota->messages, STAGE_LOOP_NOW));
    pool_stage_hang_up(stage, &client);
}

/* A request that was compiled by the old rules is not used for new claims. */
static void unused_requests_are_compiled_anew(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    struct pool *pool = &stage->pool;
    struct cached_request *cached;
    struct request request;

    request_init(&request);
    assert_int_equal(request_cache_open(pool, &request, &(struct requester){0}, &cached, NULL), 0);
    request_cache_release(pool, cached);
    assert_int_equal(pool->request_count, 1);
    reload(place, "policy: spread\n");
    assert_int_equal(pool->request_count, 0);
}

/* ---- Names that only a name service knows ---- */

static int begin_lookup(void **state)
{
    struct place *place = make_place();

    place->stage = pool_stage_make(&(struct pool_stage_settings){
        .parts = pool_stage_all, .part_count = POOL_STAGE_ALL, .is_live = true});
    place->stage->pool.settings.configuration = place->configuration;
    *state = place;
    return 0;
}

/* Sets the program that looks names up: a script. */
static void set_script(struct place *place, const char *script)
{
    static char path[600];

    snprintf(path, sizeof(path), "%s/look-up", (char *)place->directory);
    write_file(path, script);
    assert_int_equal(chmod(path, 0700), 0);
    place->stage->pool.settings.name_program = path;
}

static bool is_looked_up(struct pool_stage *stage)
{
    return !stage->pool.is_looking_up_names;
}

/* The daemon serves meanwhile. */
static void names_are_looked_up_by_another_process(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    struct pool *pool = &stage->pool;

    set_script(place,
               "#!/bin/sh\n[ \"$1\" = --resolve-names ] && [ -f \"$2\" ] && exec printf "
               "'uroot:x:0:\\nustaff@corp:x:4710:\\nuann@corp:x:4711:\\ngstaff@corp:x:4712:\\n'\n");
    reload(place, "grace: 3s\nhigh: {users: [root, ann@corp], groups: [staff@corp]}\n");
    assert_true(pool->is_looking_up_names);
    assert_int_not_equal(pool->rules.grace, 3 * DURATION_SECOND);
    pool_stage_run(stage, is_looked_up);
    assert_string_equal(pool_stage_log(stage), "reloaded\n");
    assert_int_equal(pool->rules.grace, 3 * DURATION_SECOND);
    assert_int_equal(pool->rules.high.users.items[0], 0);
    assert_int_equal(pool->rules.high.users.items[1], 4711);
    assert_int_equal(pool->rules.high.groups.items[0], 4712);
}

static void local_names_need_no_process(void **state)
{
    struct place *place = *state;
    struct pool *pool = &place->stage->pool;

    set_script(place, "#!/bin/sh\nexit 1\n");
    reload(place, "high: {users: [root, 77], groups: [root]}\n");
    assert_false(pool->is_looking_up_names);
    assert_string_equal(pool_stage_log(place->stage), "reloaded\n");
    assert_int_equal(pool->rules.high.users.count, 2);
}

static void a_failed_lookup_changes_nothing(void **state)
{
    static const struct {
        const char *script;
        const char *message;
    } cases[] = {
        {"#!/bin/sh\necho 'berth.yaml:2:8: no such user'\nexit 2\n",
         "berth.yaml:2:8: no such user"},
        {"#!/bin/sh\nkill -9 $$\n", "berth.yaml: signal 9 (Killed)"},
        {"#!/bin/sh\nexit 1\n", "berth.yaml: exit code 1"},
        {"#!/bin/sh\necho uben@corp:x:5:\n", "has changed meanwhile"},
        {"#!/bin/sh\necho 'grace: 0' >\"$2\"\n", "grace: expected at least 1ms"},
    };
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    int64_t grace = stage->pool.rules.grace;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *log;

        set_script(place, cases[i].script);
        reload(place, "grace: 3s\nhigh: [ann@corp]\n");
        pool_stage_run(stage, is_looked_up);
        log = pool_stage_log(stage);
        assert_contains(log, "error what=reload reason=");
        assert_contains(log, cases[i].message);
        assert_int_equal(stage->pool.rules.grace, grace);
    }
}

static void a_later_reload_waits_for_the_lookup(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    struct pool *pool = &stage->pool;

    set_script(place, "#!/bin/sh\nread nothing\necho uann@corp:x:4711:\n");
    reload(place, "grace: 3s\nhigh: [ann@corp]\n");
    assert_true(pool->is_looking_up_names);
    reload(place, "grace: 4s\n");
    reload(place, "grace: 5s\n");
    assert_true(pool->is_looking_up_names);
    pool_stage_run(stage, is_looked_up);
    assert_string_equal(pool_stage_log(stage), "reloaded\n");
    assert_int_equal(pool->rules.grace, 5 * DURATION_SECOND);
    assert_int_equal(pool->rules.high.users.count, 0);
}

/* A name service that never answers. */
static void a_lookup_has_a_limit(void **state)
{
    struct place *place = *state;
    struct pool_stage *stage = place->stage;
    int64_t grace = stage->pool.rules.grace;

    set_script(place, "#!/bin/sh\nexec sleep 1000\n");
    reload(place, "grace: 3s\nhigh: [ann@corp]\n");
    pool_stage_go_on(stage, 29 * DURATION_SECOND);
    assert_true(stage->pool.is_looking_up_names);
    pool_stage_go_on(stage, 2 * DURATION_SECOND);
    assert_false(stage->pool.is_looking_up_names);
    assert_contains(pool_stage_log(stage), "berth.yaml: no end within 30s");
    assert_int_equal(stage->pool.rules.grace, grace);
}

/* What berthd --resolve-names prints. */
static void names_are_printed_with_their_numbers(void **state)
{
    struct place *place = *state;
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};

    write_file(place->configuration,
               "high: {users: [root, 5], groups: [root]}\nlimits: {users: {root: 1}}\n");
    assert_int_equal(configure_print_names(place->configuration, &out, &error), 0);
    assert_string_equal(text_string(&out), "uroot:x:0:\ngroot:x:0:\nuroot:x:0:\n");
    text_finish(&out);
    write_file(place->configuration, "high: [root, roott]\n");
    assert_int_equal(configure_print_names(place->configuration, &out, &error),
                     BERTH_ERROR_INVALID);
    assert_contains(text_string(&out), "berth.yaml:1:14: high: expected a user that is known here, "
                                       "got 'roott' (did you mean root?)");
    text_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_policy_of_the_rules_is_found, begin_reading,
                                        end_reading),
        cmocka_unit_test_setup_teardown(an_unknown_policy_has_its_place_in_the_message,
                                        begin_reading, end_reading),
        cmocka_unit_test_setup_teardown(an_inventory_makes_the_engine, begin_start, end_start),
        cmocka_unit_test_setup_teardown(a_wrong_inventory_or_configuration_is_an_error, begin_start,
                                        end_start),
        cmocka_unit_test_setup_teardown(the_hardware_has_room_for_more, begin_start, end_start),
        cmocka_unit_test_setup_teardown(a_reload_changes_the_rules, begin_reload, end_reload),
        cmocka_unit_test_setup_teardown(a_bad_configuration_changes_nothing, begin_reload,
                                        end_reload),
        cmocka_unit_test_setup_teardown(limits_hold_before_devices_are_granted, begin_reload,
                                        end_reload),
        cmocka_unit_test_setup_teardown(a_reload_is_one_change, begin_reload, end_reload),
        cmocka_unit_test_setup_teardown(the_engine_gets_its_rules, begin_reload, end_reload),
        cmocka_unit_test_setup_teardown(ignored_squatters_block_no_device, begin_reload,
                                        end_reload),
        cmocka_unit_test_setup_teardown(rates_begin_anew, begin_reload, end_reload),
        cmocka_unit_test_setup_teardown(unused_requests_are_compiled_anew, begin_reload,
                                        end_reload),
        cmocka_unit_test_setup_teardown(names_are_looked_up_by_another_process, begin_lookup,
                                        end_reload),
        cmocka_unit_test_setup_teardown(local_names_need_no_process, begin_reload, end_reload),
        cmocka_unit_test_setup_teardown(a_failed_lookup_changes_nothing, begin_lookup, end_reload),
        cmocka_unit_test_setup_teardown(a_later_reload_waits_for_the_lookup, begin_lookup,
                                        end_reload),
        cmocka_unit_test_setup_teardown(a_lookup_has_a_limit, begin_reload, end_reload),
        cmocka_unit_test_setup_teardown(names_are_printed_with_their_numbers, begin_reading,
                                        end_reading),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
