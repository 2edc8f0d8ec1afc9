/* SPDX-License-Identifier: Apache-2.0
 *
 * The records of the journal. restore.c reads them; tests/unit/daemon/test_restore.c has both.
 */
#include "support/unit.h"

#include "daemon/leases/journal_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/system/file.h"
#include "daemon/journal/journal_records.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/mps_events.h"
#include "daemon/leases/prolog_epilog.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"

/* The stage of a test that writes files, and its directory. */
struct place {
    struct pool_stage *stage;
    void *directory;
};

static int begin(void **state)
{
    static const struct pool_part parts[] = {{device_drain_init, device_drain_finish},
                                             {prolog_epilog_init, prolog_epilog_finish},
                                             {mps_events_init, mps_events_finish}};
    struct place *place = calloc(1, sizeof(*place));
    char path[512];

    assert_non_null(place);
    assert_int_equal(temporary_directory_enter(&place->directory), 0);
    place->stage =
        pool_stage_make(&(struct pool_stage_settings){.parts = parts, .part_count = COUNT(parts)});
    snprintf(path, sizeof(path), "%s/berth.journal", (char *)place->directory);
    place->stage->pool.journal_path = copy_of(path);
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

/* Replaces the journal, and returns its records. */
static const char *checkpoint(struct pool_stage *stage)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (journal_write_checkpoint(&stage->pool, &error) < 0)
        fail_msg("%s", error.message);
    stage->journal_read = 0;
    return pool_stage_journal(stage);
}

static void a_job_is_written_with_its_holder(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    struct pool *pool = &stage->pool;
    struct job *job =
        pool_stage_claim(stage, &(struct stage_claim){.hold = LEASE_HOLD_PROCESS, .pid = 4711});

    pool_stage_journal(stage);
    job->end = LEASE_END_STOPPED;
    job->adopted = true;
    job_lease_watch(pool, job)->force_at = STAGE_NOW + 7 * DURATION_SECOND;
    journal_write_job(pool, job);
    job->state = JOB_LOOKING;
    job->unprepared = true;
    journal_write_job(pool, job);
    assert_string_equal(
        pool_stage_journal(stage),
        "job 1 uid 1000 pid 4711 held by process ends: released by request, adopted,"
        " force at 7\n"
        "job 1 uid 1000 pid 4711 held by process ends: released by request, draining,"
        " adopted, unprepared, force at 7\n");
}

/* The records of ends, drains and epilogs, and a device's permanent facts. */
static void other_records_are_written(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    struct pool *pool = &stage->pool;
    const struct ended_job ended = {
        .id = 9, .uid = STAGE_OTHER, .end = LEASE_END_DIED, .exit_code = optional_number_of(3)};

    journal_write_ended(pool, &ended);
    journal_write_device(pool, 2);
    journal_write_drain(pool, 1);
    journal_write_epilog(pool, 3);
    assert_string_equal(pool_stage_journal(stage), "ended 9 uid 1001 exit 3\n"
                                                   "devices nvidia2\n"
                                                   "drain 1 over\n"
                                                   "epilog 3 of lease 0 over\n");
}

static void a_checkpoint_has_the_whole_state(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    struct pool *pool = &stage->pool;
    struct kept_epilog epilog = {.slot = 2, .is_due = true, .lease = 77, .uid = STAGE_USER};
    const char *records;

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=3"});
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4", .uid = STAGE_OTHER});
    assert_int_equal(device_drain_set(pool, 3, "dust", (struct optional_number){0}, NULL), 0);
    prolog_epilog_restore(pool, &epilog);
    job_remember_ended(pool, &(struct ended_job){.id = 5, .exit_code = optional_number_of(1)});
    job_remember_ended(pool, &(struct ended_job){.id = 6});
    records = checkpoint(stage);
    /* The first record is there twice: without it the rest cannot be read. */
    assert_int_equal(strncmp(records, "pool\npool\n", 10), 0);
    assert_contains(records, "granted lease 1");
    assert_contains(records, "queued claim 2");
    assert_contains(records, "\njob 1 uid 1000");
    assert_contains(records, "\njob 2 uid 1001");
    assert_contains(records, "\ndrain 3 begun: dust\n");
    assert_contains(records, "\nepilog 2 of lease 77 due\n");
    assert_contains(records, "\nended 5 uid 0 exit 1\n");
    /* Only an exit code must outlive the daemon; an inventory's devices are in its file. */
    assert_contains_not(records, "ended 6");
    assert_contains_not(records, "\ndevices");
    /* Records go on in the new file. */
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4", .uid = STAGE_OTHER});
    assert_contains(pool_stage_journal(stage), "queued claim 3");
}

/* A user's oldest ends go first, also after a restart: the ring must be read in its order. */
static void ends_are_written_oldest_first(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    const char *records;
    const char *at;
    unsigned long last = 0;
    unsigned count = 0;

    for (uint64_t id = 1; id <= ENDED_KEPT + 10; id++)
        job_remember_ended(&stage->pool,
                           &(struct ended_job){.id = id, .exit_code = optional_number_of(0)});
    records = checkpoint(stage);
    for (at = strstr(records, "\nended "); at != NULL; at = strstr(at + 1, "\nended ")) {
        unsigned long id = strtoul(at + strlen("\nended "), NULL, 10);

        assert_true(id > last);
        last = id;
        count++;
    }
    assert_int_equal(count, ENDED_KEPT);
    assert_int_equal(last, ENDED_KEPT + 10);
}

/* The daemon's next checkpoint must not be worse than the file that is there. */
static void a_failed_checkpoint_changes_nothing(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    struct pool *pool = &stage->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    size_t used;
    bool was_refused = true;

    pool_stage_claim(stage, &(struct stage_claim){0});
    checkpoint(stage);
    used = pool->journal.used;
    for (unsigned long n = 1; was_refused; n++) {
        int code;

        failing_allocator_start(n);
        code = journal_write_checkpoint(pool, &error);
        was_refused = failing_allocator_stop();
        assert_int_equal(code, was_refused ? BERTH_ERROR_MEMORY : 0);
        assert_int_equal(pool->journal.used, used);
    }
    free(pool->journal_path);
    pool->journal_path = copy_of("/made-up/directory/berth.journal");
    assert_int_equal(journal_write_checkpoint(pool, &error), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(pool->journal.used, used);
    journal_write_drain(pool, 0);
    assert_true(pool->journal.used > used);
}

/* The next daemon would not know of a decision that is not written down: this one must end before
 * it answers. */
static void a_record_that_is_lost_ends_the_daemon(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    struct pool *pool = &stage->pool;

    text_finish(&pool->record);
    failing_allocator_start(1);
    journal_write_drain(pool, 0);
    assert_true(failing_allocator_stop());
    assert_true(pool->lost);
    assert_true(pool->loop.ended);
    assert_string_equal(pool_stage_journal(stage), "");
}

/* The devices of the hardware are in the journal, without what changes all the time. */
static void the_hardware_is_written(void **state)
{
    struct pool_stage *stage = ((struct place *)*state)->stage;
    struct pool *pool = &stage->pool;
    struct device seen = {.asleep = true, .health_reason = copy_of("hot")};
    struct journal_record record = {0};
    struct kept_devices kept = {0};
    size_t used;

    engine_device_observe(pool->engine, 1, &seen);
    journal_write_device(pool, 1);
    assert_int_equal(journal_decode(pool->journal.map, pool->journal.used, &record, &used, NULL),
                     JOURNAL_COMPLETE);
    assert_int_equal(journal_decode_custom(&record, &kept_devices_tagged, &kept, NULL), 0);
    assert_int_equal(kept.devices.count, 1);
    assert_true(device_id_equals(kept.devices.items[0].id, id_of("nvidia1")));
    assert_false(kept.devices.items[0].asleep);
    assert_null(kept.devices.items[0].health_reason);
    tagged_finish(&kept_devices_tagged, &kept);
    journal_record_finish(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_is_written_with_its_holder, begin, end),
        cmocka_unit_test_setup_teardown(other_records_are_written, begin, end),
        cmocka_unit_test_setup_teardown(a_checkpoint_has_the_whole_state, begin, end),
        cmocka_unit_test_setup_teardown(ends_are_written_oldest_first, begin, end),
        cmocka_unit_test_setup_teardown(a_failed_checkpoint_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_record_that_is_lost_ends_the_daemon, begin, end),
        cmocka_unit_test_setup_teardown(the_hardware_is_written, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
