/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/recorder_events.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/leases/pool_news.h"
#include "daemon/stream/ended_leases.h"
#include "support/daemons/played_recorder.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"

static const struct pool_part parts[] = {{pool_news_init, pool_news_finish}};

/* A machine's pool without a recorder; each test makes one. */
static int begin(void **state)
{
    unsetenv("BERTH_RECORDER");
    unsetenv("BERTH_RECORDER_TIMEOUT");
    unsetenv("STATE_DIRECTORY");
    *state = pool_stage_make(&(struct pool_stage_settings){
        .parts = parts, .part_count = COUNT(parts), .is_hardware = true});
    return 0;
}

static int end(void **state)
{
    struct pool_stage *stage = *state;

    recorder_events_finish(&stage->pool);
    return pool_stage_end(state);
}

static struct recorder_process *init(struct pool_stage *stage)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (recorder_events_init(&stage->pool, &error) < 0)
        fail_msg("%s", error.message);
    return stage->pool.recorder_process;
}

/* Names the file of the history in the configuration; NULL: there is none. */
static void set_file(struct pool *pool, const char *file)
{
    free(pool->rules.history.file);
    pool->rules.history.file = file == NULL ? NULL : copy_of(file);
    pool->rules.history.is_off = file == NULL;
}

static void the_recorder_writes_as_the_configuration_says(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct recorder_process *recorder;

    set_file(pool, "/var/made-up/history.db");
    pool->rules.history_keep = 7 * DURATION_SECOND;
    pool->rules.history_size = optional_number_of(12345);
    recorder = init(stage);
    assert_string_equal(recorder->order.file, "/var/made-up/history.db");
    assert_int_equal(recorder->order.keep, 7 * DURATION_SECOND);
    assert_int_equal(recorder->order.size, 12345);
    assert_string_equal(recorder->pool_name, pool->name);
    assert_int_equal(recorder->settings.timeout, RECORDER_TIMEOUT);
    assert_false(recorder->settings.is_own);
    assert_int_equal(recorder->wanted, 0);
}

/* The shared history of a machine must not have what a user may not see otherwise. */
static void only_a_users_own_history_has_all_commands(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct recorder_process *recorder;

    set_file(pool, "/var/made-up/history.db");
    recorder = init(stage);
    assert_false(recorder->order.shows_commands);
    pool->rules.show_commands = SHOW_COMMANDS_ALL;
    recorder_events_apply_rules(pool);
    assert_true(recorder->order.shows_commands);
    pool->rules.show_commands = SHOW_COMMANDS_DEFAULT;
    pool->settings.own = true;
    recorder_events_apply_rules(pool);
    assert_true(recorder->order.shows_commands);
}

/* A user's own pool has its history among the user's files, the machine's among the system's. */
static void the_default_file_is_the_users_or_the_machines(void **state)
{
    struct pool_stage *stage = *state;

    setenv("XDG_STATE_HOME", "/made-up/state", 1);
    init(stage);
    assert_contains_not(stage->pool.recorder_process->order.file, "/made-up/state");
    stage->pool.settings.own = true;
    recorder_events_apply_rules(&stage->pool);
    assert_contains(stage->pool.recorder_process->order.file, "/made-up/state");
    unsetenv("XDG_STATE_HOME");
}

static void the_environment_may_name_another_program(void **state)
{
    struct pool_stage *stage = *state;

    set_file(&stage->pool, "/var/made-up/history.db");
    setenv("BERTH_RECORDER", "/opt/made-up/recorder", 1);
    setenv("BERTH_RECORDER_TIMEOUT", "70ms", 1);
    assert_string_equal(init(stage)->program, "/opt/made-up/recorder");
    assert_int_equal(stage->pool.recorder_process->settings.timeout, 70 * DURATION_SECOND / 1000);
}

/* A program without a path is no program: PATH is a user's. A wrong time is told, and ignored. */
static void a_wrong_environment_is_ignored(void **state)
{
    struct pool_stage *stage = *state;

    set_file(&stage->pool, "/var/made-up/history.db");
    setenv("BERTH_RECORDER", "recorder", 1);
    setenv("BERTH_RECORDER_TIMEOUT", "soon", 1);
    assert_string_not_equal(init(stage)->program, "recorder");
    assert_int_equal(stage->pool.recorder_process->settings.timeout, RECORDER_TIMEOUT);
    assert_contains(pool_stage_log(stage), "error what=BERTH_RECORDER_TIMEOUT reason=");
}

/* Notes a lease that begins and ends. */
static void end_a_lease(struct pool_stage *stage)
{
    const struct job *job = pool_stage_claim(stage, &(struct stage_claim){0});

    pool_news_lease_changed(&stage->pool, job);
    pool_news_lease_ended(&stage->pool, job, LEASE_END_RELEASED);
}

#define assert_kept(pool, wanted, gone)                        \
    do {                                                       \
        struct wire_message message_ = {.type = WIRE_NEWS};    \
        ended_leases_fill((pool)->ended_leases, 0, &message_); \
        assert_int_equal(message_.ended.count, wanted);        \
        assert_int_equal(message_.lost, gone);                 \
        vector_finish(&message_.ended);                        \
    } while (0)

static void ended_leases_wait_for_the_recorder(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    set_file(pool, "/var/made-up/history.db");
    init(stage);
    end_a_lease(stage);
    pool_stage_go_on(stage, DURATION_HOUR);
    end_a_lease(stage);
    assert_kept(pool, 2, 0);
    pool->recorder_process->settings.events.written(pool, 2);
    pool_stage_go_on(stage, DURATION_HOUR);
    end_a_lease(stage);
    assert_kept(pool, 1, 2);
}

/* Where nothing is written, ended leases go after a moment. */
static void without_a_recorder_ended_leases_do_not_wait(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    set_file(pool, NULL);
    init(stage);
    end_a_lease(stage);
    pool_stage_go_on(stage, DURATION_HOUR);
    end_a_lease(stage);
    assert_kept(pool, 1, 1);
    set_file(pool, "/var/made-up/history.db");
    recorder_events_apply_rules(pool);
    pool_stage_go_on(stage, DURATION_HOUR);
    end_a_lease(stage);
    assert_kept(pool, 2, 1);
    set_file(pool, NULL);
    recorder_events_apply_rules(pool);
    pool_stage_go_on(stage, DURATION_HOUR);
    end_a_lease(stage);
    assert_kept(pool, 1, 3);
}

/* A history that is turned on while leases run starts the recorder. */
static void a_reload_starts_the_recorder_if_there_are_leases(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    set_file(pool, NULL);
    init(stage);
    recorder_events_apply_rules(pool);
    assert_int_equal(pool->recorder_process->wanted, 0);
    assert_int_equal(pool->recorder_process->ordered, 2);
    pool_stage_claim(stage, &(struct stage_claim){0});
    recorder_events_apply_rules(pool);
    assert_int_equal(pool->recorder_process->wanted, 1);
}

static void the_recorder_is_a_client(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct recorder_process_events *events;
    int ends[2];
    char byte;

    set_file(pool, "/var/made-up/history.db");
    events = &init(stage)->settings.events;
    events->disconnect(pool); /* nothing is connected */
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
                     0);
    assert_true(events->connect(pool, ends[0]));
    assert_true(pool->recorder_connection->is_recorder);
    assert_int_equal(pool->recorder_connection->uid, STAGE_OWNER);
    assert_null(pool->recorder_connection->quota);
    assert_int_equal(pool->clients.connection_count, 0);
    events->disconnect(pool);
    assert_int_equal(recv(ends[1], &byte, 1, MSG_DONTWAIT), 0);
    recorder_events_hung_up(pool);
    assert_null(pool->recorder_connection);
    assert_int_equal(pool->recorder_process->hung_up, 1);
    close(ends[1]);
}

/* At the daemon's end the recorder's connection is closed after the recorder's part. */
static void a_connection_may_outlive_the_recorder(void **state)
{
    struct pool_stage *stage = *state;

    set_file(&stage->pool, "/var/made-up/history.db");
    init(stage);
    recorder_events_finish(&stage->pool);
    assert_null(stage->pool.recorder_process);
    recorder_events_hung_up(&stage->pool);
}

static void faults_of_the_recorder_are_news(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    uint64_t mark = followers_mark(pool->followers);

    set_file(pool, "/var/made-up/history.db");
    init(stage)->settings.events.problems_changed(pool);
    assert_int_equal(followers_mark(pool->followers), mark + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_recorder_writes_as_the_configuration_says, begin, end),
        cmocka_unit_test_setup_teardown(only_a_users_own_history_has_all_commands, begin, end),
        cmocka_unit_test_setup_teardown(the_default_file_is_the_users_or_the_machines, begin, end),
        cmocka_unit_test_setup_teardown(the_environment_may_name_another_program, begin, end),
        cmocka_unit_test_setup_teardown(a_wrong_environment_is_ignored, begin, end),
        cmocka_unit_test_setup_teardown(ended_leases_wait_for_the_recorder, begin, end),
        cmocka_unit_test_setup_teardown(without_a_recorder_ended_leases_do_not_wait, begin, end),
        cmocka_unit_test_setup_teardown(a_reload_starts_the_recorder_if_there_are_leases, begin,
                                        end),
        cmocka_unit_test_setup_teardown(the_recorder_is_a_client, begin, end),
        cmocka_unit_test_setup_teardown(a_connection_may_outlive_the_recorder, begin, end),
        cmocka_unit_test_setup_teardown(faults_of_the_recorder_are_news, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
