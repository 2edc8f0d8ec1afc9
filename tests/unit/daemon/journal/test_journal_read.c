/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/journal/journal_read.h"

#include <string.h>

#include "base/error.h"
#include "support/assert_error.h"

enum { RECORDS = 5 };

/* The records that were taken, by their lease. */
struct taken {
    uint64_t leases[2 * RECORDS];
    size_t count;
    uint64_t misfit; /* a lease that does not fit */
    uint64_t last;   /* a lease after which the rest is of no use */
    int code;        /* what to fail with at the misfit */
};

static int take_lease(void *context, const struct journal_record *record, struct berth_error *error)
{
    struct taken *taken = context;

    assert_true(taken->count < 2 * RECORDS);
    taken->leases[taken->count++] = record->event.lease;
    if (record->event.lease == taken->misfit)
        return error_set(error, taken->code, "it does not fit");
    return record->event.lease != taken->last;
}

/* Appends records of the leases 1 to RECORDS; returns where each begins, and the end. */
static void write_records(struct text *out, size_t starts[RECORDS + 1])
{
    for (uint64_t lease = 1; lease <= RECORDS; lease++) {
        const struct engine_event event = {.type = EVENT_RELEASED, .time = 1000, .lease = lease};

        starts[lease - 1] = out->length;
        assert_int_equal(journal_encode(&event, out), 0);
    }
    starts[RECORDS] = out->length;
}

static struct journal_contents read_text(const struct text *bytes, struct taken *taken)
{
    struct journal_contents contents;

    assert_int_equal(journal_read_all(bytes, take_lease, taken, &contents, NULL), 0);
    return contents;
}

static void whole_journal_has_no_damage(void **state)
{
    struct text bytes = {0};
    struct taken taken = {0};
    struct journal_contents contents;
    size_t starts[RECORDS + 1];

    (void)state;
    write_records(&bytes, starts);
    text_append_bytes(&bytes, "\0\0\0\0", 4);
    contents = read_text(&bytes, &taken);
    assert_int_equal(contents.records, RECORDS);
    assert_int_equal(contents.damages, 0);
    assert_false(contents.is_torn);
    text_finish(&bytes);
}

/* Returns the number of the record that the byte is in. */
static size_t record_of(const size_t starts[RECORDS + 1], size_t at)
{
    size_t record = 0;

    while (at >= starts[record + 1])
        record++;
    return record;
}

/* Any change to any byte is noticed, and no record is lost. */
static void every_wrong_byte_is_repaired(void **state)
{
    struct text bytes = {0};
    size_t starts[RECORDS + 1];

    (void)state;
    write_records(&bytes, starts);
    for (size_t at = 0; at < starts[RECORDS]; at++) {
        for (int difference = 1; difference <= UINT8_MAX; difference++) {
            struct taken taken = {0};
            struct journal_contents contents;

            bytes.bytes[at] = (char)(bytes.bytes[at] ^ difference);
            contents = read_text(&bytes, &taken);
            bytes.bytes[at] = (char)(bytes.bytes[at] ^ difference);
            assert_int_equal(contents.records, RECORDS);
            for (size_t i = 0; i < RECORDS; i++)
                assert_int_equal(taken.leases[i], i + 1);
            assert_int_equal(contents.damages, 0);
            assert_int_equal(contents.repairs, 1);
            assert_int_equal(contents.first_damage, starts[record_of(starts, at)]);
            assert_true(contents.reason.message[0] != '\0');
        }
    }
    text_finish(&bytes);
}

/* Two wrong bytes of a record: exactly this record is lost, wherever they are. */
static void two_wrong_bytes_lose_only_their_record(void **state)
{
    struct text bytes = {0};
    size_t starts[RECORDS + 1];

    (void)state;
    write_records(&bytes, starts);
    for (size_t at = starts[1]; at < starts[2]; at++) {
        for (size_t other = at + 1; other < starts[2]; other++) {
            struct taken taken = {0};
            struct journal_contents contents;

            bytes.bytes[at] ^= 0x41;
            bytes.bytes[other] ^= 0x41;
            contents = read_text(&bytes, &taken);
            bytes.bytes[at] ^= 0x41;
            bytes.bytes[other] ^= 0x41;
            assert_int_equal(contents.records, RECORDS - 1);
            for (size_t i = 0; i < taken.count; i++)
                assert_int_not_equal(taken.leases[i], 2);
            assert_int_equal(contents.damages, 1);
            assert_int_equal(contents.repairs, 0);
            assert_int_equal(contents.first_damage, starts[1]);
        }
    }
    text_finish(&bytes);
}

/* A journal is never written without a record, so an empty one is none of a new pool. */
static void empty_journal_is_told_from_a_missing_one(void **state)
{
    struct text bytes = {0};
    struct taken taken = {0};

    (void)state;
    assert_true(read_text(&bytes, &taken).is_empty);
    text_append_repeated(&bytes, '\0', 4096);
    assert_true(read_text(&bytes, &taken).is_empty);
    text_append(&bytes, "x");
    assert_false(read_text(&bytes, &taken).is_empty);
    text_finish(&bytes);
}

/* A writer that was killed leaves the beginning of a record, and zeros behind it. */
static void unfinished_record_is_no_damage(void **state)
{
    struct text bytes = {0};
    size_t starts[RECORDS + 1];

    (void)state;
    write_records(&bytes, starts);
    for (size_t cut = starts[RECORDS - 1] + 1; cut + 8 <= starts[RECORDS]; cut++) {
        for (int padded = 0; padded < 2; padded++) {
            struct text torn = {0};
            struct taken taken = {0};
            struct journal_contents contents;

            text_append_bytes(&torn, bytes.bytes, cut);
            for (size_t i = cut; padded != 0 && i < starts[RECORDS]; i++)
                text_append_bytes(&torn, "", 1);
            contents = read_text(&torn, &taken);
            assert_int_equal(contents.records, RECORDS - 1);
            assert_int_equal(contents.damages, 0);
            assert_true(contents.is_torn);
            text_finish(&torn);
        }
    }
    text_finish(&bytes);
}

static void record_that_does_not_fit_is_damage(void **state)
{
    struct text bytes = {0};
    struct taken taken = {.misfit = 2, .code = BERTH_ERROR_INVALID};
    struct journal_contents contents;
    size_t starts[RECORDS + 1];

    (void)state;
    write_records(&bytes, starts);
    contents = read_text(&bytes, &taken);
    assert_int_equal(contents.records, RECORDS - 1);
    assert_int_equal(contents.damages, 1);
    assert_int_equal(contents.first_damage, starts[1]);
    assert_string_equal(contents.reason.message, "it does not fit");
    text_finish(&bytes);
}

static void rest_of_no_use_is_not_read(void **state)
{
    struct text bytes = {0};
    struct taken taken = {.last = 2};
    struct journal_contents contents;
    size_t starts[RECORDS + 1];

    (void)state;
    write_records(&bytes, starts);
    contents = read_text(&bytes, &taken);
    assert_int_equal(taken.count, 2);
    assert_int_equal(contents.records, 1);
    assert_int_equal(contents.damages, 0);
    text_finish(&bytes);
}

static void lack_of_memory_is_no_damage(void **state)
{
    struct text bytes = {0};
    struct taken taken = {.misfit = 3, .code = BERTH_ERROR_MEMORY};
    struct journal_contents contents;
    struct berth_error error = BERTH_ERROR_INIT;
    size_t starts[RECORDS + 1];

    (void)state;
    write_records(&bytes, starts);
    assert_int_equal(journal_read_all(&bytes, take_lease, &taken, &contents, &error),
                     BERTH_ERROR_MEMORY);
    assert_int_equal(error.code, BERTH_ERROR_MEMORY);
    text_finish(&bytes);
}

static void nonsense_is_damage(void **state)
{
    struct text bytes = {0};
    struct taken taken = {0};
    struct journal_contents contents;

    (void)state;
    contents = read_text(&bytes, &taken);
    assert_int_equal(contents.damages, 0);
    for (int i = 0; i < 100; i++)
        text_append(&bytes, "nonsense");
    contents = read_text(&bytes, &taken);
    assert_int_equal(contents.records, 0);
    assert_int_equal(contents.damages, 1);
    text_finish(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_journal_has_no_damage),
        cmocka_unit_test(every_wrong_byte_is_repaired),
        cmocka_unit_test(two_wrong_bytes_lose_only_their_record),
        cmocka_unit_test(empty_journal_is_told_from_a_missing_one),
        cmocka_unit_test(unfinished_record_is_no_damage),
        cmocka_unit_test(record_that_does_not_fit_is_damage),
        cmocka_unit_test(rest_of_no_use_is_not_read),
        cmocka_unit_test(lack_of_memory_is_no_damage),
        cmocka_unit_test(nonsense_is_damage),
    };

    return cmocka_run_group_tests_name("journal_read", tests, NULL, NULL);
}
