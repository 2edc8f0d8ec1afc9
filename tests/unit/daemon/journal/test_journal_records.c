/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's own records: written and read back, with all fields and with none, by this version
 * and by others.
 */
#include "support/unit.h"

#include "daemon/journal/journal_records.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/become_user.h"
#include "engine/engine.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

/* Encodes the value as a record of the writer's table, and decodes that by `table`. */
static void pass_through(enum keep_type type, const struct tagged_table *writer, const void *value,
                         const struct tagged_table *table, void *ret_value)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct journal_record record = {0};
    struct text bytes = {0};
    size_t used = 0;

    assert_int_equal(journal_encode_custom((int)type, 4711, writer, value, &bytes), 0);
    assert_int_equal(journal_decode(bytes.bytes, bytes.length, &record, &used, &error),
                     JOURNAL_COMPLETE);
    assert_int_equal(used, bytes.length);
    assert_true(record.unknown);
    assert_int_equal(record.event.type, type);
    assert_int_equal(record.event.time, 4711);
    memset(ret_value, 0, table->size);
    if (journal_decode_custom(&record, table, ret_value, &error) < 0)
        fail_msg("%s", error.message);
    journal_record_finish(&record);
    text_finish(&bytes);
}

static void the_search_for_lost_leases_comes_back(void **state)
{
    const struct kept_lost values[] = {{.is_lost = true}, {.is_lost = false}};
    struct kept_lost back;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        pass_through(KEEP_LOST, &kept_lost_tagged, &values[i], &kept_lost_tagged, &back);
        assert_int_equal(back.is_lost, values[i].is_lost);
    }
}

static void a_pool_comes_back(void **state)
{
    const struct kept_pool kept = {.boot = (char *)"0b-1",
                                   .name = (char *)"00ff",
                                   .clock_offset = -12345678901234,
                                   .inventory_hash = UINT64_MAX,
                                   .inventory = (char *)"/etc/pool.yaml"};
    struct kept_pool back;

    (void)state;
    pass_through(KEEP_POOL, &kept_pool_tagged, &kept, &kept_pool_tagged, &back);
    assert_string_equal(back.boot, kept.boot);
    assert_string_equal(back.name, kept.name);
    assert_true(back.clock_offset == kept.clock_offset);
    assert_true(back.inventory_hash == kept.inventory_hash);
    assert_string_equal(back.inventory, kept.inventory);
    tagged_finish(&kept_pool_tagged, &back);
}

static const struct kept_job full_job = {
    .id = 7,
    .token = {UINT64_MAX, UINT64_MAX - 1},
    .uid = UINT32_MAX,
    .pid = INT32_MAX,
    .started = 77,
    .hold = LEASE_HOLD_NOTHING,
    .end = LEASE_END_IDLE,
    .draining = true,
    .since = -1,
    .force_at = 5,
    .parent = 3,
    .command = (char *)"python train.py \xc3\xa9",
    .adopted = true,
    .unprepared = true,
    .wait = 9,
};

static void check_same_job(const struct kept_job *one, const struct kept_job *other)
{
    assert_true(one->id == other->id);
    assert_true(one->token[0] == other->token[0] && one->token[1] == other->token[1]);
    assert_int_equal(one->uid, other->uid);
    assert_int_equal(one->pid, other->pid);
    assert_true(one->started == other->started);
    assert_int_equal(one->hold, other->hold);
    assert_int_equal(one->end, other->end);
    assert_int_equal(one->draining, other->draining);
    assert_true(one->since == other->since);
    assert_true(one->force_at == other->force_at);
    assert_true(one->parent == other->parent);
    assert_int_equal(one->adopted, other->adopted);
    assert_int_equal(one->unprepared, other->unprepared);
    assert_true(one->wait == other->wait);
    assert_int_equal(one->command == NULL, other->command == NULL);
    if (one->command != NULL)
        assert_string_equal(one->command, other->command);
}

static void a_job_comes_back(void **state)
{
    const struct kept_job empty = {.force_at = TIME_NEVER, .wait = TIME_NEVER};
    const struct kept_job at_once = {.force_at = 0, .wait = 0};
    struct kept_job back;

    (void)state;
    pass_through(KEEP_JOB, &kept_job_tagged, &full_job, &kept_job_tagged, &back);
    check_same_job(&back, &full_job);
    tagged_finish(&kept_job_tagged, &back);
    pass_through(KEEP_JOB, &kept_job_tagged, &empty, &kept_job_tagged, &back);
    check_same_job(&back, &empty);
    pass_through(KEEP_JOB, &kept_job_tagged, &at_once, &kept_job_tagged, &back);
    check_same_job(&back, &at_once);
}

static void an_end_comes_back(void **state)
{
    const struct kept_ended with = {
        .id = 7, .uid = 1000, .end = LEASE_END_DIED, .exit_code = optional_number_of(0)};
    const struct kept_ended without = {.id = 8, .end = LEASE_END_RELEASED};
    struct kept_ended back;

    (void)state;
    pass_through(KEEP_ENDED, &kept_ended_tagged, &with, &kept_ended_tagged, &back);
    assert_int_equal(back.id, 7);
    assert_int_equal(back.uid, 1000);
    assert_int_equal(back.end, LEASE_END_DIED);
    assert_true(back.exit_code.known);
    assert_int_equal(back.exit_code.value, 0);
    pass_through(KEEP_ENDED, &kept_ended_tagged, &without, &kept_ended_tagged, &back);
    assert_false(back.exit_code.known);
}

static void a_drain_comes_back(void **state)
{
    const struct kept_drain by_user = {.slot = 3,
                                       .uid = optional_number_of(0),
                                       .time = 123,
                                       .reason = (char *)"fan \"2\" is loud"};
    const struct kept_drain over = {.slot = UINT32_MAX};
    struct kept_drain back;

    (void)state;
    pass_through(KEEP_DRAIN, &kept_drain_tagged, &by_user, &kept_drain_tagged, &back);
    assert_int_equal(back.slot, 3);
    assert_true(back.uid.known && back.uid.value == 0);
    assert_int_equal(back.time, 123);
    assert_string_equal(back.reason, by_user.reason);
    tagged_finish(&kept_drain_tagged, &back);
    pass_through(KEEP_DRAIN, &kept_drain_tagged, &over, &kept_drain_tagged, &back);
    assert_true(back.slot == UINT32_MAX);
    assert_false(back.uid.known);
    assert_int_equal(back.time, 0);
    assert_null(back.reason);
}

static void an_epilog_comes_back(void **state)
{
    const struct kept_epilog due = {
        .slot = 2, .is_due = true, .lease = 9, .uid = 1000, .name = (char *)"train"};
    struct kept_epilog back;

    (void)state;
    pass_through(KEEP_EPILOG, &kept_epilog_tagged, &due, &kept_epilog_tagged, &back);
    assert_int_equal(back.slot, 2);
    assert_true(back.is_due);
    assert_int_equal(back.lease, 9);
    assert_int_equal(back.uid, 1000);
    assert_string_equal(back.name, "train");
    tagged_finish(&kept_epilog_tagged, &back);
}

static void an_mps_control_daemon_comes_back(void **state)
{
    const struct kept_mps running = {.slot = 1,
                                     .is_there = true,
                                     .uid = 1000,
                                     .gid = 0,
                                     .pid = 4711,
                                     .started = 5,
                                     .pipe = (char *)"/run/p",
                                     .log = (char *)"/run/l"};
    const struct kept_mps without_group = {.gid = USER_IDENTITY_NO_GROUP};
    struct kept_mps back;

    (void)state;
    pass_through(KEEP_MPS, &kept_mps_tagged, &running, &kept_mps_tagged, &back);
    assert_int_equal(back.slot, 1);
    assert_true(back.is_there);
    assert_int_equal(back.uid, 1000);
    assert_int_equal(back.gid, 0);
    assert_int_equal(back.pid, 4711);
    assert_int_equal(back.started, 5);
    assert_string_equal(back.pipe, "/run/p");
    assert_string_equal(back.log, "/run/l");
    tagged_finish(&kept_mps_tagged, &back);
    pass_through(KEEP_MPS, &kept_mps_tagged, &without_group, &kept_mps_tagged, &back);
    assert_true(back.gid == USER_IDENTITY_NO_GROUP);
    assert_false(back.is_there);
}

static void devices_come_back_in_their_order(void **state)
{
    struct machine machine = {0};
    struct kept_devices kept;
    struct kept_devices back;

    (void)state;
    machine_add_ids(&machine, "nvidia3,amd0,nvidia1");
    machine.devices.items[0].name = copy_of("GPU");
    machine.devices.items[0].memory_total = optional_number_of(UINT64_C(80) << 30);
    kept.devices = machine.devices;
    pass_through(KEEP_DEVICES, &kept_devices_tagged, &kept, &kept_devices_tagged, &back);
    assert_int_equal(back.devices.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(device_id_equals(back.devices.items[i].id, machine.devices.items[i].id));
        assert_true(device_facts_equal(&back.devices.items[i], &machine.devices.items[i]));
    }
    tagged_finish(&kept_devices_tagged, &back);
    machine_finish(&machine);
}

/* Encodes the job as a later version may do, which knows one more value of the member at `offset`,
 * and decodes it. */
static int pass_later_job(const struct kept_job *job, size_t offset)
{
    struct tagged_field fields[64];
    struct tagged_table later = kept_job_tagged;
    struct journal_record record = {0};
    struct kept_job back = {0};
    struct text bytes = {0};
    size_t used = 0;
    int code;

    memcpy(fields, later.fields, later.count * sizeof(*fields));
    for (size_t i = 0; i < later.count; i++)
        fields[i].max += fields[i].kind != NULL && fields[i].offset == offset;
    later.fields = fields;
    later.digest = NULL;
    assert_int_equal(journal_encode_custom(KEEP_JOB, 1, &kept_job_tagged, job, &bytes),
                     BERTH_ERROR_INVALID);
    text_finish(&bytes);
    assert_int_equal(journal_encode_custom(KEEP_JOB, 1, &later, job, &bytes), 0);
    assert_int_equal(journal_decode(bytes.bytes, bytes.length, &record, &used, NULL),
                     JOURNAL_COMPLETE);
    code = journal_decode_custom(&record, &kept_job_tagged, &back, NULL);
    tagged_finish(&kept_job_tagged, &back);
    journal_record_finish(&record);
    text_finish(&bytes);
    return code;
}

/* The daemon acts on these values, so it must not take an unknown one for another. */
static void values_of_later_versions_are_refused(void **state)
{
    struct kept_job job = full_job;

    (void)state;
    job.hold = LEASE_HOLD_NOTHING + 1;
    assert_int_equal(pass_later_job(&job, offsetof(struct kept_job, hold)), BERTH_ERROR_SYNTAX);
    job = full_job;
    job.end = LEASE_END_IDLE + 1;
    assert_int_equal(pass_later_job(&job, offsetof(struct kept_job, end)), BERTH_ERROR_SYNTAX);
}

/* Earlier versions wrote only the first twelve fields. */
static void missing_fields_have_their_defaults(void **state)
{
    struct tagged_table earlier = kept_job_tagged;
    struct kept_job back;

    (void)state;
    earlier.count = 12;
    earlier.digest = NULL;
    pass_through(KEEP_JOB, &earlier, &full_job, &kept_job_tagged, &back);
    assert_int_equal(back.id, full_job.id);
    assert_int_equal(back.force_at, full_job.force_at);
    assert_true(back.wait == TIME_NEVER);
    assert_int_equal(back.parent, 0);
    assert_null(back.command);
    assert_false(back.adopted || back.unprepared);
}

static int decode_job(void *context)
{
    const struct text *bytes = context;
    struct journal_record record = {0};
    struct kept_job back = {0};
    size_t used = 0;
    int code = journal_decode(bytes->bytes, bytes->length, &record, &used, NULL);

    if (code != JOURNAL_COMPLETE)
        return code;
    code = journal_decode_custom(&record, &kept_job_tagged, &back, NULL);
    tagged_finish(&kept_job_tagged, &back);
    journal_record_finish(&record);
    return code;
}

static int encode_job(void *context)
{
    struct text bytes = {0};
    int code = journal_encode_custom(KEEP_JOB, 1, &kept_job_tagged, context, &bytes);

    text_finish(&bytes);
    return code;
}

static void no_memory_is_an_error(void **state)
{
    struct text bytes = {0};
    struct kept_job job = full_job;

    (void)state;
    assert_true(failing_allocator_try_all(encode_job, &job) > 0);
    assert_int_equal(journal_encode_custom(KEEP_JOB, 1, &kept_job_tagged, &job, &bytes), 0);
    assert_true(failing_allocator_try_all(decode_job, &bytes) > 0);
    text_finish(&bytes);
}

static void the_boot_id_has_no_newline(void **state)
{
    char *id = journal_records_boot_id();
    char *again = journal_records_boot_id();

    (void)state;
    assert_non_null(id);
    assert_null(strchr(id, '\n'));
    assert_int_equal(strlen(id), strlen("01234567-89ab-cdef-0123-456789abcdef"));
    assert_string_equal(id, again);
    free(id);
    free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_comes_back),
        cmocka_unit_test(the_search_for_lost_leases_comes_back),
        cmocka_unit_test(a_job_comes_back),
        cmocka_unit_test(an_end_comes_back),
        cmocka_unit_test(a_drain_comes_back),
        cmocka_unit_test(an_epilog_comes_back),
        cmocka_unit_test(an_mps_control_daemon_comes_back),
        cmocka_unit_test(devices_come_back_in_their_order),
        cmocka_unit_test(values_of_later_versions_are_refused),
        cmocka_unit_test(missing_fields_have_their_defaults),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(the_boot_id_has_no_newline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
