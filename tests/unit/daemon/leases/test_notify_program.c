/* SPDX-License-Identifier: Apache-2.0
 *
 * The administrator's `notify` program, with real programs.
 */
#include "support/unit.h"

#include "daemon/leases/notify_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "daemon/core/runner.h"
#include "daemon/leases/lease_warnings.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"

/* The program appends its variables to a file. */
static const char notify_script[] = "#!/bin/sh\n"
                                    "{ echo \"$BERTH_EVENT|$BERTH_MESSAGE|$BERTH_LEASE|"
                                    "$BERTH_UID|$BERTH_NAME|$BERTH_DEVICES|$BERTH_PID\"; } >> ";

struct place {
    struct pool_stage *stage;
    void *directory;
};

static int begin(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    char path[512];
    char **word;
    FILE *file;

    assert_non_null(place);
    assert_int_equal(temporary_directory_enter(&place->directory), 0);
    file = fopen("notify", "w");
    assert_non_null(file);
    fprintf(file, "%s%s/told\n", notify_script, (char *)place->directory);
    assert_int_equal(fchmod(fileno(file), 0755), 0);
    assert_int_equal(fclose(file), 0);
    place->stage = pool_stage_make(&(struct pool_stage_settings){
        .parts = pool_stage_all, .part_count = POOL_STAGE_ALL, .is_live = true});
    word = vector_append(&place->stage->pool.rules.notify);
    assert_non_null(word);
    snprintf(path, sizeof(path), "%s/notify", (char *)place->directory);
    *word = copy_of(path);
    *state = place;
    return 0;
}

static int end(void **state)
{
    struct place *place = *state;
    int result;

    pool_stage_free(place->stage);
    result = temporary_directory_leave(&place->directory);
    free(place);
    return result;
}

static bool is_idle(struct pool_stage *stage)
{
    return !runner_is_busy(stage->pool.runner);
}

/* Waits for the programs, and returns what they were told; valid until the next call. */
static const char *told(struct pool_stage *stage)
{
    static struct text text;

    pool_stage_run(stage, is_idle);
    text_finish(&text);
    if (file_read("told", 1 << 20, &text, NULL) == 0)
        assert_int_equal(unlink("told"), 0);
    return text_string(&text);
}

static void the_program_is_told_of_devices(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    struct device_process process = {
        .pid = 4711, .uid = optional_number_of(1234), .command = (char *)"python\tx.py"};

    notify_program_drained(&stage->pool, 1, "dust");
    assert_string_equal(told(stage),
                        "drained|nvidia1 was taken out of service: dust||||nvidia1|\n");
    notify_program_squatter(&stage->pool, 0, &process);
    assert_string_equal(told(stage),
                        "squatter|nvidia0 is used without a lease by process 4711 of uid 1234: "
                        "python||1234||nvidia0|4711\n");
    stage->pool.rules.show_commands = SHOW_COMMANDS_ALL;
    notify_program_squatter(&stage->pool, 0, &process);
    assert_string_equal(told(stage),
                        "squatter|nvidia0 is used without a lease by process 4711 of uid 1234: "
                        "python\xef\xbf\xbdx.py||1234||nvidia0|4711\n");
}

static bool has_no_timer(struct pool_stage *stage)
{
    return !list_is_linked(&job_of_id(&stage->pool, 1)->guard->in_warnings);
}

static bool was_told(struct pool_stage *stage)
{
    return access("told", F_OK) == 0 && is_idle(stage);
}

/* It is told once, however often the client comes back. */
static void the_program_is_told_of_leases(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    struct pool *pool = &stage->pool;
    struct job *job =
        pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2 time=1001000000"});
    struct lease_view view;

    assert_true(engine_get_lease(pool->engine, job->by_lease.id, &view));
    ((struct request *)engine_request_what(view.request))->name = copy_of("train");
    lease_warnings_limit(pool, job);
    pool_stage_run(stage, was_told);
    assert_string_equal(told(stage),
                        "ending|lease 1 (train) of uid 1000 on nvidia0,nvidia1 ends in 1s by "
                        "its time limit|1|1000|train|nvidia0,nvidia1|\n");
    lease_warnings_limit(pool, job);
    pool_stage_run(stage, has_no_timer);
    assert_string_equal(told(stage), "");
}

static void without_a_program_nothing_runs(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;

    string_list_finish(&stage->pool.rules.notify);
    notify_program_drained(&stage->pool, 1, "dust");
    assert_true(is_idle(stage));
    assert_string_equal(pool_stage_log(stage), "");
}

/* The log tells of a program that fails, with its reason. */
static void a_program_that_fails_is_logged(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;

    free(stage->pool.rules.notify.items[0]);
    stage->pool.rules.notify.items[0] = copy_of("/bin/false");
    notify_program_drained(&stage->pool, 1, "dust");
    told(stage);
    assert_string_equal(pool_stage_log(stage), "notify event=drained result=\"exit code 1\"\n");
}

/* A user whose leases cause very many warnings does not fill the machine with programs. */
static void only_so_many_programs_run(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    size_t lines = 0;

    for (int i = 0; i < NOTIFY_PROGRAM_RUNS_MAX + 10; i++)
        notify_program_drained(&stage->pool, 1, "dust");
    assert_string_equal(
        pool_stage_log(stage),
        "notify event=drained result=\"dropped: 100 programs already run or wait\"\n");
    for (const char *at = told(stage); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, NOTIFY_PROGRAM_RUNS_MAX);
    notify_program_drained(&stage->pool, 1, "dust");
    assert_contains(told(stage), "drained|");
}

static void without_memory_no_program_runs(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    bool was_refused = true;

    for (unsigned long n = 1; was_refused; n++) {
        failing_allocator_start(n);
        notify_program_drained(&stage->pool, 1, "dust");
        was_refused = failing_allocator_stop();
        assert_int_equal(runner_is_busy(stage->pool.runner), !was_refused);
    }
    assert_string_equal(told(stage),
                        "drained|nvidia1 was taken out of service: dust||||nvidia1|\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_program_is_told_of_devices, begin, end),
        cmocka_unit_test_setup_teardown(the_program_is_told_of_leases, begin, end),
        cmocka_unit_test_setup_teardown(without_a_program_nothing_runs, begin, end),
        cmocka_unit_test_setup_teardown(a_program_that_fails_is_logged, begin, end),
        cmocka_unit_test_setup_teardown(only_so_many_programs_run, begin, end),
        cmocka_unit_test_setup_teardown(without_memory_no_program_runs, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
