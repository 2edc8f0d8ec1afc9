/* SPDX-License-Identifier: Apache-2.0
 *
 * The administrator's programs before and after the use of a device, with real programs.
 */
#include "support/unit.h"

#include "daemon/leases/prolog_epilog.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "daemon/core/runner.h"
#include "daemon/journal/journal_records.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/lease_ending.h"
#include "support/daemons/played_locks.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"

/* A stage with two devices, and a directory for its programs. */
struct place {
    struct pool_stage *stage;
    struct stage_client client;
    void *directory;
};

static int begin(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    assert_non_null(place);
    assert_int_equal(temporary_directory_enter(&place->directory), 0);
    place->stage = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1",
        .parts = pool_stage_all,
        .part_count = POOL_STAGE_ALL,
        .is_live = true,
    });
    place->client = pool_stage_connect(place->stage, STAGE_USER);
    *state = place;
    return 0;
}

static int end(void **state)
{
    struct place *place = *state;
    int result;

    pool_stage_hang_up(place->stage, &place->client);
    pool_stage_free(place->stage);
    result = temporary_directory_leave(&place->directory);
    free(place);
    return result;
}

/* Makes the command run this script, which appends a line to the file `ran` first. */
static void set_script(const struct place *place, struct check_command *command, const char *name,
                       const char *script)
{
    char path[512];
    char **word;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", (char *)place->directory, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "#!/bin/sh\ncd '%s'\n"
            "echo \"$BERTH_EVENT $BERTH_DEVICE $1 $BERTH_LEASE $BERTH_UID $BERTH_NAME\" >> ran\n"
            "%s\n",
            (char *)place->directory, script);
    assert_int_equal(fchmod(fileno(file), 0755), 0);
    assert_int_equal(fclose(file), 0);
    string_list_finish(&command->argv);
    word = vector_append(&command->argv);
    assert_non_null(word);
    *word = copy_of(path);
    command->deadline = DURATION_MINUTE;
}

static void set_prolog(const struct place *place, const char *script)
{
    set_script(place, &place->stage->pool.rules.prolog, "prolog", script);
}

static void set_epilog(const struct place *place, const char *script)
{
    set_script(place, &place->stage->pool.rules.epilog, "epilog", script);
}

/* Returns the lines of `ran`, valid until the next call. */
static const char *ran(void)
{
    static struct text text;

    text_finish(&text);
    if (file_read("ran", 1 << 20, &text, NULL) == 0)
        assert_int_equal(unlink("ran"), 0);
    return text_string(&text);
}

static bool is_idle(struct pool_stage *stage)
{
    return !runner_is_busy(stage->pool.runner);
}

static bool has_run(struct pool_stage *stage)
{
    (void)stage;
    return access("ran", F_OK) == 0;
}

/* Lets the script go on that waits for the file `go`. */
static void let_go(void)
{
    FILE *file = fopen("go", "w");

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

#define AWAIT_GO "while ! test -e go; do sleep 0.01; done"

static struct job *claim(const struct place *place, const char *words)
{
    struct job *job = pool_stage_claim(
        place->stage,
        &(struct stage_claim){.words = words, .connection = place->client.connection});

    if (job->state == JOB_HELD)
        engine_events_granted(&place->stage->pool, job);
    return job;
}

static void end_lease(const struct place *place, struct job *job)
{
    job->end = LEASE_END_RELEASED;
    lease_ending_done(&place->stage->pool, job);
    engine_events_settle(&place->stage->pool);
}

static uint32_t blocks_of(const struct place *place, uint32_t slot)
{
    struct slot_view view;

    engine_get_slot(place->stage->pool.engine, slot, &view);
    return view.blocks;
}

/* ---- Prologs ---- */

static void the_holder_is_told_after_the_prologs(void **state)
{
    struct place *place = *state;
    struct pool *pool = &place->stage->pool;
    struct job *job;

    set_prolog(place, "");
    job = claim(place, "gpus=2");
    assert_true(job->unprepared);
    assert_sent(&place->client, WIRE_WAITING);
    assert_contains(pool_stage_journal(place->stage), ", unprepared");
    assert_no_message(&place->client);
    pool_stage_run(place->stage, is_idle);
    assert_sent(&place->client, WIRE_GRANTED);
    assert_false(job->unprepared);
    assert_contains(ran(), "prolog nvidia0 nvidia0 1 1000 \n");
    assert_contains(pool_stage_log(place->stage),
                    "prolog device=nvidia1 id=1 uid=1000 result=\"ok\"\n");
    /* The devices are prepared: a lease that shares one waits for nothing. */
    assert_false(prolog_epilog_prepare(pool, job));
    /* For the next lease they are not. */
    end_lease(place, job);
    claim(place, "device=nvidia1");
    pool_stage_run(place->stage, is_idle);
    assert_string_equal(ran(), "prolog nvidia1 nvidia1 2 1000 \n");
}

/* Several replicas of one lease may share a device: it is prepared and cleaned once. */
static void replicas_on_one_device_are_one_use(void **state)
{
    static const char words[] = "replicas=2 device=nvidia0 sharing=time-slice share=250";
    struct place *place = *state;
    struct job *job;

    set_prolog(place, "");
    set_epilog(place, "");
    job = claim(place, words);
    pool_stage_run(place->stage, is_idle);
    assert_false(job->unprepared);
    assert_string_equal(ran(), "prolog nvidia0 nvidia0 1 1000 \n");
    end_lease(place, job);
    pool_stage_run(place->stage, is_idle);
    assert_string_equal(ran(), "epilog nvidia0 nvidia0 1 1000 \n");
}

/* Leases within leases have the outer one's devices; adopted processes use theirs already. */
static void some_leases_have_no_prolog(void **state)
{
    struct place *place = *state;
    struct pool *pool = &place->stage->pool;
    struct job *outer = claim(place, "gpus=1");
    struct job *inner =
        pool_stage_claim(place->stage, &(struct stage_claim){.parent = outer->by_id.id});
    struct job *adopted = pool_stage_claim(place->stage, &(struct stage_claim){0});

    set_prolog(place, "");
    adopted->adopted = true;
    assert_false(prolog_epilog_prepare(pool, inner));
    assert_false(prolog_epilog_prepare(pool, adopted));
    assert_true(is_idle(place->stage));
}

/* A prolog that fails drains its device, and the claim goes back to its place in the queue. */
static void a_failed_prolog_drains_the_device(void **state)
{
    struct place *place = *state;
    struct pool *pool = &place->stage->pool;
    const struct job *job;

    set_prolog(place, "test $1 != nvidia0 || { echo 'no power'; exit 3; }");
    job = claim(place, "gpus=1");
    pool_stage_run(place->stage, is_idle);
    assert_int_equal(blocks_of(place, 0), BLOCK_DRAINED);
    assert_string_equal(device_drain_of(pool, 0)->reason, "prolog: exit code 3: no power");
    assert_false(device_drain_of(pool, 0)->uid.known);
    assert_contains(pool_stage_log(place->stage), "returned id=1\n");
    assert_sent(&place->client, WIRE_WAITING);
    /* It has another device now, whose prolog runs as well. */
    assert_sent(&place->client, WIRE_WAITING);
    assert_sent(&place->client, WIRE_GRANTED);
    assert_int_equal(job->state, JOB_HELD);
    assert_string_equal(ran(), "prolog nvidia0 nvidia0 1 1000 \nprolog nvidia1 nvidia1 1 1000 \n");
}

static void a_claim_that_no_device_can_serve_any_more_is_refused(void **state)
{
    struct place *place = *state;
    struct pool *pool = &place->stage->pool;
    const struct job *job;

    set_prolog(place, "exit 1");
    job = claim(place, "gpus=2");
    pool_stage_run(place->stage, is_idle);
    assert_int_equal(job->state, JOB_WAITING);
    assert_int_equal(job->by_lease.id, 0);
    assert_int_equal(blocks_of(place, 0) & blocks_of(place, 1), BLOCK_DRAINED);
    assert_int_equal(pool->job_count, 1);
}

/* A prolog without an end fails at its deadline. */
static void a_prolog_has_a_deadline(void **state)
{
    struct place *place = *state;

    set_prolog(place, "sleep 600");
    place->stage->pool.rules.prolog.deadline = DURATION_SECOND / 10;
    claim(place, "device=nvidia0");
    pool_stage_run(place->stage, is_idle);
    assert_contains(device_drain_of(&place->stage->pool, 0)->reason, "prolog: no end within");
}

/* The lease ended while its prolog ran: the program is killed, and its result does not matter. */
static void the_end_of_a_lease_kills_its_prolog(void **state)
{
    struct place *place = *state;
    struct job *job;

    set_prolog(place, "sleep 600");
    set_epilog(place, "");
    job = claim(place, "device=nvidia0");
    pool_stage_run(place->stage, has_run);
    ran();
    end_lease(place, job);
    assert_int_equal(blocks_of(place, 0), BLOCK_DIRTY);
    pool_stage_run(place->stage, is_idle);
    assert_int_equal(blocks_of(place, 0), 0);
    assert_string_equal(ran(), "epilog nvidia0 nvidia0 1 1000 \n");
}

/* Without an epilog, the device is free once the killed prolog is gone. */
static void a_killed_prolog_needs_no_epilog(void **state)
{
    struct place *place = *state;
    struct job *job;

    set_prolog(place, "sleep 600");
    job = claim(place, "device=nvidia0");
    pool_stage_run(place->stage, has_run);
    pool_stage_journal(place->stage);
    end_lease(place, job);
    assert_int_equal(blocks_of(place, 0), BLOCK_DIRTY);
    pool_stage_run(place->stage, is_idle);
    assert_int_equal(blocks_of(place, 0), 0);
    assert_contains_not(pool_stage_journal(place->stage), "epilog");
}

/* Tenants that share a device: the prolog runs before the first one only. */
static void a_further_tenant_needs_no_prolog(void **state)
{
    static const char words[] = "device=nvidia0 sharing=time-slice share=250";
    struct place *place = *state;
    struct job *first;
    struct job *second;

    set_prolog(place, AWAIT_GO);
    set_epilog(place, "");
    first = claim(place, words);
    second = claim(place, words);
    assert_true(first->unprepared && second->unprepared);
    let_go();
    pool_stage_run(place->stage, is_idle);
    assert_false(first->unprepared || second->unprepared);
    assert_string_equal(ran(), "prolog nvidia0 nvidia0 1 1000 \n");
    assert_false(claim(place, words)->unprepared);
    /* The first of all tenants goes, and others stay: nothing runs. */
    end_lease(place, first);
    assert_true(is_idle(place->stage));
}

/* ---- Epilogs ---- */

static void a_device_is_granted_after_its_epilog(void **state)
{
    struct place *place = *state;
    struct job *job = claim(place, "gpus=2");
    const struct job *next;

    set_epilog(place, AWAIT_GO);
    assert_sent(&place->client, WIRE_GRANTED);
    pool_stage_journal(place->stage);
    end_lease(place, job);
    assert_int_equal(blocks_of(place, 0) & blocks_of(place, 1), BLOCK_DIRTY);
    assert_contains(pool_stage_journal(place->stage), "epilog 1 of lease 1 due\n");
    next = claim(place, "gpus=2");
    assert_int_equal(next->state, JOB_WAITING);
    let_go();
    place->stage->pool.device_locks->updated = 0;
    pool_stage_run(place->stage, is_idle);
    assert_sent(&place->client, WIRE_GRANTED);
    /* Another pool may have asked for one of them. */
    assert_true(place->stage->pool.device_locks->updated >= 2);
    assert_contains(pool_stage_journal(place->stage), "epilog 1 of lease 1 over\n");
    assert_contains(ran(), "epilog nvidia1 nvidia1 1 1000 \n");
}

/* Without the name in the way: users see it in the message of a mail, for example. */
static void a_failed_epilog_drains_the_device(void **state)
{
    struct place *place = *state;
    struct job *job = claim(place, "device=nvidia1");

    set_epilog(place, "exit 9");
    end_lease(place, job);
    pool_stage_run(place->stage, is_idle);
    assert_int_equal(blocks_of(place, 1), BLOCK_DRAINED);
    assert_string_equal(device_drain_of(&place->stage->pool, 1)->reason, "epilog: exit code 9");
    assert_contains(pool_stage_log(place->stage), "result=\"exit code 9\"\n");
}

/* Leases within others leave nothing: the device stays the outer one's. */
static void leases_within_leases_have_no_epilog(void **state)
{
    struct place *place = *state;
    struct job *outer = claim(place, "gpus=1");
    struct job *inner =
        pool_stage_claim(place->stage, &(struct stage_claim){.parent = outer->by_id.id});

    set_epilog(place, "");
    end_lease(place, inner);
    assert_true(is_idle(place->stage));
    end_lease(place, outer);
    assert_false(is_idle(place->stage));
}

/* An epilog that a reload took away is not run, and its device is free. */
static void a_removed_epilog_frees_the_device(void **state)
{
    struct place *place = *state;
    struct pool *pool = &place->stage->pool;
    struct kept_epilog kept = {.slot = 1, .is_due = true, .lease = 7, .uid = STAGE_USER};

    engine_block(pool->engine, 1, BLOCK_DIRTY);
    prolog_epilog_restore(pool, &kept);
    prolog_epilog_restored(pool);
    assert_int_equal(blocks_of(place, 1), 0);
    assert_contains(pool_stage_journal(place->stage), "epilog 1 of lease 7 over\n");
    assert_true(is_idle(place->stage));
}

/* ---- Restarts ---- */

static void an_epilog_of_a_daemon_before_runs_again(void **state)
{
    struct place *place = *state;
    struct pool *pool = &place->stage->pool;
    struct kept_epilog kept = {
        .slot = 1, .is_due = true, .lease = 7, .uid = 1234, .name = copy_of("train")};
    struct kept_epilog now;

    set_epilog(place, "");
    prolog_epilog_restore(pool, &kept);
    assert_null(kept.name);
    assert_true(prolog_epilog_kept(pool, 1, &now));
    assert_int_equal(now.lease, 7);
    assert_string_equal(now.name, "train");
    assert_false(prolog_epilog_kept(pool, 0, &now));
    prolog_epilog_restored(pool);
    assert_int_equal(blocks_of(place, 1), BLOCK_DIRTY);
    pool_stage_run(place->stage, is_idle);
    assert_int_equal(blocks_of(place, 1), 0);
    assert_string_equal(ran(), "epilog nvidia1 nvidia1 7 1234 train\n");
    assert_false(prolog_epilog_kept(pool, 1, &now));
}

static void an_epilog_of_other_devices_is_forgotten(void **state)
{
    struct place *place = *state;
    struct pool *pool = &place->stage->pool;
    struct kept_epilog kept = {.slot = 1, .is_due = true, .lease = 7};
    struct kept_epilog now;

    set_epilog(place, "");
    prolog_epilog_restore(pool, &kept);
    kept.slot = (uint32_t)engine_slots_max(pool->engine);
    kept.name = copy_of("train");
    prolog_epilog_restore(pool, &kept); /* there is no such slot */
    assert_string_equal(kept.name, "train");
    free(kept.name);
    prolog_epilog_forget(pool);
    assert_false(prolog_epilog_kept(pool, 1, &now));
    prolog_epilog_restored(pool);
    assert_true(is_idle(place->stage));
}

/* A holder that was told before the restart needs no prolog; one that was not waits for it again.
 */
static void only_untold_holders_wait_again(void **state)
{
    static const char words[] = "device=nvidia0 sharing=time-slice share=250";
    struct place *place = *state;
    struct pool *pool = &place->stage->pool;
    struct job *told = pool_stage_claim(place->stage, &(struct stage_claim){.words = words});
    struct job *untold =
        pool_stage_claim(place->stage, &(struct stage_claim){.words = words, .uid = STAGE_OTHER});
    struct job *alone =
        pool_stage_claim(place->stage, &(struct stage_claim){.words = "device=nvidia1"});

    set_prolog(place, "");
    told->restored = untold->restored = alone->restored = true;
    untold->unprepared = alone->unprepared = true;
    prolog_epilog_restored(pool);
    /* Its device was prepared for the other tenant. */
    assert_false(prolog_epilog_prepare_again(pool, untold));
    assert_true(prolog_epilog_prepare_again(pool, alone));
    pool_stage_run(place->stage, is_idle);
    assert_false(alone->unprepared);
    assert_string_equal(ran(), "prolog nvidia1 nvidia1 3 1000 \n");
}

/* ---- Memory ---- */

/* The journal says that the program must run: the next daemon runs it. */
static void without_memory_the_daemon_ends(void **state)
{
    struct place *place = *state;
    struct pool *pool = &place->stage->pool;
    struct kept_epilog kept = {.slot = 1, .is_due = true, .lease = 7};

    set_epilog(place, "");
    prolog_epilog_restore(pool, &kept);
    /* The journal has memory for its record. */
    engine_block(pool->engine, 1, BLOCK_DIRTY);
    failing_allocator_start(1);
    prolog_epilog_restored(pool);
    assert_true(failing_allocator_stop());
    assert_true(pool->lost && pool->loop.ended);
    assert_int_equal(blocks_of(place, 1), BLOCK_DIRTY);
    assert_true(is_idle(place->stage));
}

#define AT_PLACE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AT_PLACE(the_holder_is_told_after_the_prologs),
        AT_PLACE(replicas_on_one_device_are_one_use),
        AT_PLACE(some_leases_have_no_prolog),
        AT_PLACE(a_failed_prolog_drains_the_device),
        AT_PLACE(a_claim_that_no_device_can_serve_any_more_is_refused),
        AT_PLACE(a_prolog_has_a_deadline),
        AT_PLACE(the_end_of_a_lease_kills_its_prolog),
        AT_PLACE(a_killed_prolog_needs_no_epilog),
        AT_PLACE(a_further_tenant_needs_no_prolog),
        AT_PLACE(a_device_is_granted_after_its_epilog),
        AT_PLACE(a_failed_epilog_drains_the_device),
        AT_PLACE(leases_within_leases_have_no_epilog),
        AT_PLACE(a_removed_epilog_frees_the_device),
        AT_PLACE(an_epilog_of_a_daemon_before_runs_again),
        AT_PLACE(an_epilog_of_other_devices_is_forgotten),
        AT_PLACE(only_untold_holders_wait_again),
        AT_PLACE(without_memory_the_daemon_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
