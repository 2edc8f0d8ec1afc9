/* SPDX-License-Identifier: Apache-2.0
 *
 * The next daemon reads a journal, and a damaged one.
 */
#include "support/unit.h"

#include "daemon/restore.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "daemon/journal/journal_records.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/leases/prolog_epilog.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/restored_pools.h"
#include "support/daemons/waiting_child.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

/* ---- Reading ---- */

static void without_a_journal_the_pool_is_new(void **state)
{
    struct place *place = *state;
    struct berth_error error = BERTH_ERROR_INIT;
    const struct pool *pool;
    struct machine machine;

    assert_int_equal(start_again(place, &error), 0);
    assert_int_equal(error.code, 0);
    pool = &place->after->pool;
    assert_int_equal(pool->job_count, 0);
    assert_int_equal(pool->problems.count, 0);
    assert_int_equal(restore_devices(&place->after->pool, &machine, NULL), 0);
    assert_int_equal(machine.devices.count, 0);
    machine_finish(&machine);
}

static void leases_and_claims_are_as_they_were(void **state)
{
    struct place *place = *state;
    struct job *job = claim(place, "gpus=2 time=100s", LEASE_HOLD_PROCESS, 4711);
    const struct job *found;
    struct lease_view lease;
    struct claim_view view;
    struct pool *pool;

    job->end = LEASE_END_STOPPED;
    job->adopted = true;
    job->holder->started = 99;
    job_lease_watch(&place->before->pool, job)->force_at = STAGE_NOW + 5;
    claim(place, "gpus=1", LEASE_HOLD_CONNECTION, 0);
    job_remember_ended(&place->before->pool,
                       &(struct ended_job){.id = 77,
                                           .uid = STAGE_OTHER,
                                           .end = LEASE_END_DIED,
                                           .exit_code = optional_number_of(3)});
    free(place->before->pool.name);
    place->before->pool.name = copy_of("the same pool");
    write_journal(place);
    pool = read_again(place);
    assert_string_equal(pool->name, "the same pool");
    assert_int_equal(pool_clock_now(&pool->clock), STAGE_NOW);
    found = job_of_id(pool, 1);
    assert_int_equal(found->state, JOB_ENDING);
    assert_int_equal(found->end, LEASE_END_STOPPED);
    assert_true(found->adopted && found->restored);
    assert_int_equal(found->hold, LEASE_HOLD_PROCESS);
    assert_int_equal(found->holder->pid, 4711);
    assert_int_equal(found->holder->uid, STAGE_USER);
    assert_int_equal(found->holder->started, 99);
    assert_string_equal(found->holder->command, "train");
    assert_int_equal(found->since, STAGE_NOW);
    assert_int_equal(found->guard->force_at, STAGE_NOW + 5);
    assert_ptr_equal(job_of_token(pool, (uint64_t[]){1, 0}), found);
    assert_true(engine_get_lease(pool->engine, found->by_lease.id, &lease));
    assert_int_equal(lease.slot_count, 2);
    assert_int_equal(lease.expires, STAGE_NOW + 100 * DURATION_SECOND);
    assert_int_equal(job_of_id(pool, 2)->state, JOB_WAITING);
    assert_true(engine_get_claim(pool->engine, 2, &view));
    assert_int_equal(job_find_ended(pool, 77)->exit_code.value, 3);
    assert_contains(pool_stage_log(place->after), " jobs=2 waiting=1\n");
}

/* A later record of a job replaces the earlier one. */
static void the_last_record_of_a_job_counts(void **state)
{
    struct place *place = *state;
    struct pool *before = &place->before->pool;
    struct job *job = claim(place, "gpus=2", LEASE_HOLD_PROCESS, 4711);
    const struct job *found;
    struct pool *pool;

    write_journal(place);
    job->state = JOB_LOOKING;
    journal_write_job(before, job);
    pool = read_again(place);
    found = job_of_id(pool, 1);
    assert_int_equal(pool->job_count, 1);
    assert_int_equal(found->state, JOB_DRAINING);
    /* The claim of a job that is over is not there any more. */
    assert_int_equal(engine_vacated(before->engine, 1, NULL), 0);
    pool = read_again(place);
    assert_int_equal(pool->job_count, 0);
}

static void drains_and_epilogs_are_restored(void **state)
{
    struct place *place = *state;
    struct pool *before = &place->before->pool;
    struct kept_epilog epilog = {.slot = 1, .is_due = true, .lease = 7};
    struct slot_view view;
    struct pool *pool;

    assert_int_equal(device_drain_set(before, 0, "dust", (struct optional_number){0}, NULL), 0);
    prolog_epilog_restore(before, &epilog);
    write_journal(place);
    pool = read_again(place);
    engine_get_slot(pool->engine, 0, &view);
    assert_int_equal(view.blocks, BLOCK_DRAINED);
    assert_string_equal(device_drain_of(pool, 0)->reason, "dust");
    assert_true(prolog_epilog_kept(pool, 1, &epilog));
}

/* Replaces the first records, which say what the journal is about. */
static void rewrite_pool(const struct place *place, const struct kept_pool *kept)
{
    struct text content = {0};

    assert_int_equal(journal_encode_custom(KEEP_POOL, STAGE_NOW, &kept_pool_tagged, kept, &content),
                     0);
    assert_int_equal(journal_file_make(&place->before->pool.journal, place->path, &content, NULL),
                     0);
    text_finish(&content);
}

/* A machine that was restarted has no process of before. */
static void a_journal_of_another_boot_is_ignored(void **state)
{
    struct place *place = *state;
    const struct kept_pool kept = {.boot = (char *)"another", .name = (char *)"old"};
    struct pool *pool;

    rewrite_pool(place, &kept);
    claim(place, "gpus=2", LEASE_HOLD_NOTHING, 0);
    pool = read_again(place);
    assert_int_equal(pool->job_count, 0);
    assert_string_equal(pool->name, "0123456789abcdef");
    assert_int_equal(pool->problems.count, 0);
}

/* ---- Other devices ---- */

/* The inventory has changed. Leases on its former devices cannot be carried over. */
static void leases_on_other_devices_stop_the_start(void **state)
{
    struct place *place = *state;
    struct berth_error error = BERTH_ERROR_INIT;

    place->before->pool.inventory_hash = 12345;
    claim(place, "gpus=1", LEASE_HOLD_PROCESS, getpid());
    write_journal(place);
    assert_int_equal(start_again(place, &error), BERTH_ERROR_BUSY);
    assert_string_equal(error.message,
                        "/run/stage/devices.json: has changed, and leases are held on its former "
                        "devices; end these leases first");
}

/* Without living holders there is nothing to carry over, and other drains are forgotten. */
static void other_devices_are_fine_without_holders(void **state)
{
    struct place *place = *state;
    struct pool *before = &place->before->pool;
    struct kept_epilog epilog = {.slot = 1, .is_due = true, .lease = 7};
    pid_t child = waiting_child_start();
    struct pool *pool;

    before->inventory_hash = 12345;
    claim(place, "gpus=1", LEASE_HOLD_PROCESS, child);
    waiting_child_end(child);
    assert_int_equal(device_drain_set(before, 0, "dust", (struct optional_number){0}, NULL), 0);
    prolog_epilog_restore(before, &epilog);
    write_journal(place);
    pool = read_again(place);
    assert_int_equal(device_drain_of(pool, 0)->time, 0);
    assert_false(prolog_epilog_kept(pool, 1, &epilog));
}

/* A reservation has no holder, but its user relies on it. */
static void a_reservation_on_other_devices_stops_the_start(void **state)
{
    struct place *place = *state;
    pid_t child = waiting_child_start();
    struct berth_error error = BERTH_ERROR_INIT;

    place->before->pool.inventory_hash = 12345;
    claim(place, "gpus=1 time=100s", LEASE_HOLD_NOTHING, child);
    waiting_child_end(child);
    write_journal(place);
    assert_int_equal(start_again(place, &error), BERTH_ERROR_BUSY);
}

/* ---- Devices ---- */

static void the_devices_of_the_hardware_are_restored(void **state)
{
    struct place *place = *state;
    struct pool *before = &place->before->pool;
    struct machine machine;

    assert_int_equal(probe_poll_create(&before->probe_poll, &(struct probe_poll_settings){0}, NULL),
                     0);
    write_journal(place);
    /* The second device has other facts by now. */
    engine_machine(before->engine)->devices.items[1].uuid = copy_of("GPU-1");
    journal_write_device(before, 1);
    assert_int_equal(restore_devices(before, &machine, NULL), 0);
    assert_int_equal(machine.devices.count, 2);
    assert_true(device_id_equals(machine.devices.items[0].id, id_of("nvidia0")));
    assert_string_equal(machine.devices.items[1].uuid, "GPU-1");
    assert_true(machine.devices.items[0].old && machine.devices.items[1].old);
    machine_finish(&machine);
    probe_poll_destroy(before->probe_poll);
    before->probe_poll = NULL;
}

/* ---- Journals that end too early ---- */

/* A claim or lease without a job: no client was ever told of it. */
static void strays_are_ended(void **state)
{
    struct place *place = *state;
    struct pool *pool;
    struct claim_view view;
    struct lease_view lease;

    job_free(&place->before->pool, claim(place, "gpus=2", LEASE_HOLD_CONNECTION, 0));
    job_free(&place->before->pool, claim(place, "gpus=1", LEASE_HOLD_CONNECTION, 0));
    write_journal(place);
    pool = restore(place);
    assert_false(engine_get_lease(pool->engine, 1, &lease));
    assert_false(engine_get_claim(pool->engine, 2, &view));
    assert_int_equal(pool->job_count, 0);
}

/* Returns the journal's content. */
static struct text read_file(const struct place *place)
{
    struct text content = {0};

    assert_int_equal(file_read(place->path, 1 << 24, &content, NULL), 0);
    return content;
}

static void write_file(const struct place *place, const void *bytes, size_t length)
{
    int descriptor = open(place->path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);

    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes, length), length);
    close(descriptor);
}

/* The daemon died while it wrote the last record. */
static void a_torn_end_is_ignored(void **state)
{
    struct place *place = *state;
    struct text content;
    struct pool *pool;

    claim(place, "gpus=1", LEASE_HOLD_NOTHING, 0);
    write_journal(place);
    content = read_file(place);
    write_file(place, content.bytes, place->before->pool.journal.used);
    pool = read_again(place);
    assert_int_equal(pool->job_count, 1);
    write_file(place, content.bytes, place->before->pool.journal.used - 20);
    pool = read_again(place);
    assert_contains(pool_stage_log(place->after), "torn=yes\n");
    assert_int_equal(pool->problems.count, 0);
    text_finish(&content);
}

/* ---- Damage ---- */

/* The id of a lease that a damaged record had must not be given again: the marks of its processes
 * would be another lease's. */
static void a_damaged_journal_is_kept_and_skips_ids(void **state)
{
    struct place *place = *state;
    struct text content;
    char kept[600];
    struct stat status;
    struct pool *pool;
    const struct job *job;

    claim(place, "gpus=1", LEASE_HOLD_NOTHING, 0);
    claim(place, "gpus=1", LEASE_HOLD_NOTHING, 0);
    write_journal(place);
    content = read_file(place);
    /* Two wrong bytes cannot be repaired. */
    content.bytes[place->before->pool.journal.used / 2] ^= 0x10;
    content.bytes[place->before->pool.journal.used / 2 + 1] ^= 0x10;
    write_file(place, content.bytes, content.length);
    pool = read_again(place);
    assert_int_equal(pool->problems.count, 1);
    assert_string_equal(pool->problems.items[0].backend, "journal");
    assert_contains(pool->problems.items[0].message, "the pool's journal was damaged at byte ");
    assert_contains(pool->problems.items[0].message,
                    ".damaged; leases may be lost; their devices stay blocked until their "
                    "processes end");
    assert_contains(pool_stage_log(place->after), "damages=1 ");
    snprintf(kept, sizeof(kept), "%s.damaged", place->path);
    assert_int_equal(stat(kept, &status), 0);
    assert_int_equal(status.st_size, content.length);
    job = pool_stage_claim(place->after, &(struct stage_claim){.words = "opportunistic=1"});
    assert_true(job->by_id.id > 1000000);
    text_finish(&content);
}

/* Damages the n-th record from behind, beyond repair. Returns its type; 0: there is none. */
static int damage_record(const struct text *content, size_t used, size_t number)
{
    size_t starts[64];
    size_t count = 0;

    for (size_t at = 0; at < used;) {
        struct journal_record record = {0};
        size_t length;

        assert_int_equal(journal_decode(content->bytes + at, used - at, &record, &length, NULL),
                         JOURNAL_COMPLETE);
        journal_record_finish(&record);
        assert_true(count < COUNT(starts));
        starts[count++] = at;
        at += length;
    }
    if (number >= count)
        return 0;
    content->bytes[starts[count - 1 - number] + JOURNAL_HEADER_SIZE] ^= 0x55;
    content->bytes[starts[count - 1 - number] + JOURNAL_HEADER_SIZE + 1] ^= 0x55;
    return (unsigned char)content->bytes[starts[count - 1 - number] + 1];
}

/* Whichever record is lost: the device of the running command is not granted. */
static void no_lost_record_frees_a_device(void **state)
{
    struct place *place = *state;
    struct text content;
    size_t used;
    int type = 1;

    claim(place, "gpus=1", LEASE_HOLD_PROCESS, getpid());
    write_journal(place);
    used = place->before->pool.journal.used;
    for (size_t number = 0; type != 0; number++) {
        struct pool *pool;
        struct slot_view view;

        content = read_file(place);
        type = damage_record(&content, used, number);
        write_file(place, content.bytes, content.length);
        pool = restore(place);
        for (int i = 0; type != 0 && i < LOST_LEASES_ANSWERS; i++) {
            struct reader_answer answer = {0};
            struct reader_process *process;

            process = played_readers_add(&answer, getpid(), READER_FOUND);
            process->lease = 1;
            process->devices = copy_of("nvidia0");
            process->uid = optional_number_of(STAGE_USER);
            played_readers_answer(played_readers_query(pool->readers, READER_MARKED), &answer);
            pool_stage_go_on(place->after, LOST_LEASES_EVERY);
        }
        engine_get_slot(pool->engine, 0, &view);
        if (!view.taken && (view.blocks & BLOCK_DIRTY) == 0)
            fail_msg("record type %d frees the device", type);
        engine_get_slot(pool->engine, 1, &view);
        if (view.taken || view.blocks != 0)
            fail_msg("record type %d blocks another device", type);
        text_finish(&content);
        write_journal(place);
    }
}

/* The next daemon knows from its whole journal that the search is not over. */
static void the_search_outlives_the_daemon(void **state)
{
    struct place *place = *state;
    struct pool *pool;

    lost_leases_note(&place->before->pool, true);
    write_journal(place);
    pool = read_again(place);
    assert_true(lost_leases_are_sought(pool));
    assert_int_equal(pool->problems.count, 0);
    journal_write_lost(&place->before->pool, false);
    pool = read_again(place);
    assert_false(lost_leases_are_sought(pool));
}

/* One wrong byte is put right, and nothing is lost. */
static void a_repaired_journal_loses_nothing(void **state)
{
    struct place *place = *state;
    struct text content;
    struct pool *pool;

    claim(place, "gpus=1", LEASE_HOLD_NOTHING, 0);
    write_journal(place);
    content = read_file(place);
    content.bytes[place->before->pool.journal.used / 2] ^= 0x10;
    write_file(place, content.bytes, content.length);
    pool = read_again(place);
    assert_contains(pool->problems.items[0].message, "nothing is lost");
    assert_int_equal(pool->job_count, 1);
    assert_int_equal(
        pool_stage_claim(place->after, &(struct stage_claim){.words = "opportunistic=1"})->by_id.id,
        2);
    text_finish(&content);
}

/* An empty file shows no id: the seconds since 1970 are more than were ever given. */
static void an_empty_journal_is_damage(void **state)
{
    struct place *place = *state;
    const struct job *job;
    struct pool *pool;

    write_file(place, "", 0);
    pool = read_again(place);
    assert_int_equal(pool->problems.count, 1);
    assert_contains(pool->problems.items[0].message, "(the file is empty)");
    engine_resume(pool->engine);
    job = pool_stage_claim(place->after, &(struct stage_claim){0});
    assert_int_equal(job->by_id.id, pool_clock_now(&pool->clock) / DURATION_SECOND + 1);
}

/* Whichever byte is wrong: the daemon starts, and no id is given twice. */
static void any_flipped_byte_can_be_survived(void **state)
{
    struct place *place = *state;
    struct pool *before = &place->before->pool;
    struct text content;
    size_t used;

    claim(place, "gpus=1", LEASE_HOLD_NOTHING, 0);
    claim(place, "gpus=2", LEASE_HOLD_CONNECTION, 0);
    assert_int_equal(device_drain_set(before, 1, "dust", (struct optional_number){0}, NULL), 0);
    write_journal(place);
    content = read_file(place);
    used = before->journal.used;
    for (size_t at = 0; at < used; at += 7) {
        struct berth_error error = BERTH_ERROR_INIT;
        const struct job *job;

        content.bytes[at] ^= 0x55;
        write_file(place, content.bytes, content.length);
        content.bytes[at] ^= 0x55;
        if (start_again(place, &error) < 0)
            fail_msg("byte %zu: %s", at, error.message);
        assert_int_equal(restore_holders(&place->after->pool, NULL), 0);
        job = pool_stage_claim(place->after, &(struct stage_claim){.words = "opportunistic=1"});
        if (job->by_id.id <= 2)
            fail_msg("byte %zu: id %" PRIu64 " is given again", at, job->by_id.id);
    }
    text_finish(&content);
}

/* ---- Memory ---- */

/* Without memory the daemon does not start, rather than to forget a lease. */
static void without_memory_the_daemon_does_not_start(void **state)
{
    struct place *place = *state;
    unsigned long refusals = 0;
    int code;

    claim(place, "gpus=1", LEASE_HOLD_NOTHING, 0);
    claim(place, "gpus=2", LEASE_HOLD_CONNECTION, 0);
    write_journal(place);
    do {
        struct pool *pool;
        bool was_refused;

        if (place->after != NULL)
            pool_stage_free(place->after);
        place->after = make_stage(place);
        pool = &place->after->pool;
        pool->journaling = false;
        failing_allocator_start(++refusals);
        code = restore_read(pool, NULL);
        was_refused = failing_allocator_stop();
        if (code == 0)
            assert_int_equal(pool->job_count, 2);
        else
            assert_int_equal(code, BERTH_ERROR_MEMORY);
        assert_true(code == 0 || was_refused);
    } while (code != 0);
    assert_true(refusals > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AT_PLACE(without_a_journal_the_pool_is_new),
        AT_PLACE(leases_and_claims_are_as_they_were),
        AT_PLACE(the_last_record_of_a_job_counts),
        AT_PLACE(drains_and_epilogs_are_restored),
        AT_PLACE(a_journal_of_another_boot_is_ignored),
        AT_PLACE(leases_on_other_devices_stop_the_start),
        AT_PLACE(other_devices_are_fine_without_holders),
        AT_PLACE(a_reservation_on_other_devices_stops_the_start),
        AT_PLACE(the_devices_of_the_hardware_are_restored),
        AT_PLACE(strays_are_ended),
        AT_PLACE(a_torn_end_is_ignored),
        AT_PLACE(no_lost_record_frees_a_device),
        AT_PLACE(the_search_outlives_the_daemon),
        AT_PLACE(a_damaged_journal_is_kept_and_skips_ids),
        AT_PLACE(a_repaired_journal_loses_nothing),
        AT_PLACE(an_empty_journal_is_damage),
        AT_PLACE(any_flipped_byte_can_be_survived),
        AT_PLACE(without_memory_the_daemon_does_not_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
