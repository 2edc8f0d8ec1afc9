/* SPDX-License-Identifier: Apache-2.0
 *
 * Records that journal_encode() does not write: those of later versions, and broken records with a
 * correct checksum.
 */
#include "support/unit.h"

#include "engine/journal/journal.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "codec/request_tags.h"
#include "support/assert_error.h"
#include "support/engine/journal_records.h"
#include "support/exact_copy.h"

/* Decodes the record, which must be valid, and finishes the bytes. */
static struct journal_record taken(struct text *bytes)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct journal_record record = {0};
    char *copy = exact_copy(bytes->bytes, bytes->length);
    size_t used = 0;

    journal_decode(copy, bytes->length, &record, &used, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(used, bytes->length);
    free(copy);
    text_finish(bytes);
    return record;
}

static void check_refused_record(struct text *bytes, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct journal_record record = {.event.lease = 4711};
    char *copy = exact_copy(bytes->bytes, bytes->length);
    size_t used = 4711;

    assert_fails(journal_decode(copy, bytes->length, &record, &used, &error), BERTH_ERROR_SYNTAX,
                 &error, message);
    assert_int_equal(journal_decode(copy, bytes->length, &record, &used, NULL), BERTH_ERROR_SYNTAX);
    assert_true(record.event.lease == 4711 && used == 4711);
    free(copy);
    text_finish(bytes);
}

/* Checks that a record with these fields, which start at byte 20, is refused. */
static void check_refused_fields(unsigned type, struct text *fields, const char *message)
{
    struct text bytes = record_of(type, fields);

    check_refused_record(&bytes, message);
}

/* Checks the same for fields within the request. */
static void check_refused_request(struct text *fields, const char *message)
{
    struct text outer = {0};

    append_field(&outer, JOURNAL_WHAT, fields->bytes, fields->length);
    text_finish(fields);
    check_refused_fields(EVENT_REQUEST, &outer, message);
}

static void missing_fields_have_defaults(void **state)
{
    struct text nothing = {0};
    struct text bytes = record_of(EVENT_GRANTED, &nothing);
    struct journal_record record = taken(&bytes);
    struct request plain;

    (void)state;
    assert_int_equal(record.event.type, EVENT_GRANTED);
    assert_int_equal(record.event.time, 5);
    assert_int_equal(record.event.replicas, 1);
    assert_true(record.event.expires == TIME_NEVER);
    assert_true(record.event.waited);
    assert_true(record.event.deadline == 0);
    assert_null(record.event.what);
    assert_null(record.event.party);
    journal_record_finish(&record);

    append_field(&nothing, JOURNAL_WHAT, NULL, 0);
    append_field(&nothing, JOURNAL_PARTY, NULL, 0);
    bytes = record_of(EVENT_REQUEST, &nothing);
    record = taken(&bytes);
    request_init(&plain);
    assert_true(request_equals(record.event.what, &plain));
    assert_int_equal(record.event.party->uid, 0);
    assert_null(record.event.party->mask);
    assert_true(record.event.expires == 0);
    journal_record_finish(&record);
}

static void unknown_fields_are_skipped(void **state)
{
    struct text fields = {0};
    struct text inner = {0};
    struct text bytes;
    struct journal_record record;

    (void)state;
    append_field(&fields, 0, "zero", 4);
    append_field(&fields, 20, "later", 5);
    append_number_field(&fields, JOURNAL_LEASE, 7, 1);
    append_field(&fields, 20, NULL, 0);
    append_field(&fields, TAGGED_MANDATORY - 1, "later", 5);
    append_field(&inner, 1000, "later", 5);
    append_field(&inner, REQUEST_TAG_NAME, "train", 5);
    append_field(&fields, JOURNAL_WHAT, inner.bytes, inner.length);
    text_clear(&inner);
    append_field(&inner, 5, "later", 5);
    append_number_field(&inner, JOURNAL_PARTY_UID, 1000, 2);
    append_field(&fields, JOURNAL_PARTY, inner.bytes, inner.length);
    text_finish(&inner);
    bytes = record_of(EVENT_REQUEST, &fields);
    record = taken(&bytes);
    assert_int_equal(record.event.lease, 7);
    assert_string_equal(record.event.what->name, "train");
    assert_int_equal(record.event.party->uid, 1000);
    journal_record_finish(&record);
}

static void unknown_types_are_told(void **state)
{
    (void)state;
    for (unsigned type = EVENT_TYPES; type < 256; type++) {
        struct text fields = {0};
        struct text bytes;
        struct journal_record record;

        append_number_field(&fields, TAGGED_MANDATORY, 1, 1);
        append_number_field(&fields, JOURNAL_LEASE, 7, 1);
        bytes = record_of(type, &fields);
        record = taken(&bytes);
        assert_true(record.unknown);
        assert_int_equal(record.event.type, type);
        assert_int_equal(record.event.time, 5);
        assert_int_equal(record.event.lease, 0);
        assert_int_equal(journal_encode(&record.event, &bytes), BERTH_ERROR_INVALID);
        journal_record_finish(&record);
    }
}

static void numbers_may_have_zeros_at_the_high_end(void **state)
{
    struct text fields = {0};
    struct text bytes;
    struct journal_record record;

    (void)state;
    append_number_field(&fields, JOURNAL_SLOT, 7, 8);
    append_number_field(&fields, JOURNAL_PRESENT, 1, 3);
    append_number_field(&fields, JOURNAL_REPLICAS, 0, 0);
    bytes = record_of(EVENT_GRANTED, &fields);
    record = taken(&bytes);
    assert_int_equal(record.event.slot, 7);
    assert_true(record.event.present);
    assert_int_equal(record.event.replicas, 0);
    journal_record_finish(&record);
}

static void headers_are_checked(void **state)
{
    static const char rest[8];
    struct text bytes = record_of_length(EVENT_RELEASED, rest, 8, 8);

    (void)state;
    bytes.bytes[0] = '\0';
    bytes.length = 1;
    check_refused_record(&bytes, "journal: expected a record of format 0xB1, got 0x00 at byte 0");
    bytes = record_of_length(EVENT_RELEASED, rest, 8, 8);
    bytes.bytes[2] = '\t';
    check_refused_record(&bytes, "journal: expected guard 0x9B61, got 0x31D9 at byte 6");
    bytes = record_of_length(EVENT_RELEASED, rest, 8, 8);
    bytes.bytes[12] = '\1';
    check_refused_record(&bytes, "journal: expected checksum 0x08ACE2E9, got 0x41909FCE at byte 8");
    bytes = record_of_length(0, rest, 8, 8);
    check_refused_record(&bytes, "journal: expected a type above 0, got 0 at byte 1");
    bytes = record_of_length(EVENT_RELEASED, rest, 7, 7);
    check_refused_record(&bytes, "journal: expected a length from 8 to 16777216, got 7 at byte 2");
    bytes = record_of_length(EVENT_RELEASED, rest, 8, JOURNAL_LENGTH_MAX + 1);
    check_refused_record(&bytes,
                         "journal: expected a length from 8 to 16777216, got 16777217 at byte 2");
    bytes = record_of_length(EVENT_RELEASED, rest, 8, JOURNAL_LENGTH_MAX);
    assert_int_equal(journal_decode(bytes.bytes, bytes.length, NULL, NULL, NULL),
                     JOURNAL_INCOMPLETE);
    text_finish(&bytes);
}

static void fields_stay_within_the_record(void **state)
{
    struct text fields = {0};

    (void)state;
    text_append_repeated(&fields, '\1', 5);
    check_refused_fields(EVENT_RELEASED, &fields,
                         "journal: expected a field of at least 6 bytes, got 5 at byte 20");
    append_little(&fields, 1000, 2);
    append_little(&fields, 3, 4);
    append_little(&fields, 0, 2);
    check_refused_fields(EVENT_RELEASED, &fields,
                         "journal: expected a value of at most 2 bytes, got 3 at byte 20");
    append_little(&fields, 1000, 2);
    append_little(&fields, UINT32_MAX, 4);
    check_refused_fields(EVENT_RELEASED, &fields,
                         "journal: expected a value of at most 0 bytes, got 4294967295 at byte 20");
    append_field(&fields, REQUEST_TAG_NAME, "train", 5);
    append_little(&fields, 0, 1);
    check_refused_request(&fields,
                          "journal: expected a field of at least 6 bytes, got 1 at byte 37");
}

static void known_fields_come_once(void **state)
{
    struct text fields = {0};

    (void)state;
    append_number_field(&fields, JOURNAL_LEASE, 7, 1);
    append_number_field(&fields, JOURNAL_LEASE, 7, 1);
    check_refused_fields(EVENT_RELEASED, &fields,
                         "journal: expected lease once, got it again at byte 27");
    append_field(&fields, JOURNAL_WHAT, NULL, 0);
    append_field(&fields, JOURNAL_WHAT, NULL, 0);
    check_refused_fields(EVENT_REQUEST, &fields,
                         "journal: expected what once, got it again at byte 26");
    append_field(&fields, REQUEST_TAG_NAME, "train", 5);
    append_field(&fields, REQUEST_TAG_NAME, "train", 5);
    check_refused_request(&fields, "journal: expected name once, got it again at byte 37");
}

static void mandatory_fields_must_be_known(void **state)
{
    struct text fields = {0};

    (void)state;
    append_field(&fields, TAGGED_MANDATORY, NULL, 0);
    check_refused_fields(EVENT_RELEASED, &fields,
                         "journal: expected fields that this version knows, got mandatory field "
                         "32768 at byte 20");
    append_field(&fields, UINT16_MAX, NULL, 0);
    check_refused_request(&fields,
                          "journal: expected fields that this version knows, got mandatory field "
                          "65535 at byte 26");
}

static void numbers_have_limits(void **state)
{
    static const struct {
        unsigned tag;
        uint64_t max;
        const char *name;
    } limits[] = {
        {JOURNAL_REPLICAS, UINT32_MAX, "replicas"},
        {JOURNAL_REASON, 4, "reason"},
        {JOURNAL_SLOT, UINT32_MAX, "slot"},
        {JOURNAL_BLOCKS, 31, "blocks"},
        {JOURNAL_HEALTH, 2, "health"},
        {JOURNAL_PRESENT, 1, "present"},
        {JOURNAL_WAITED, 1, "waited"},
        {JOURNAL_SHARE, 1000000, "share"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct text fields = {0};
        struct text wanted = {0};
        struct text bytes;
        struct journal_record record;

        append_number_field(&fields, limits[i].tag, limits[i].max, 8);
        bytes = record_of(EVENT_DEVICE, &fields);
        record = taken(&bytes);
        journal_record_finish(&record);
        append_number_field(&fields, limits[i].tag, limits[i].max + 1, 8);
        text_append_format(&wanted, "journal: expected %s of at most %ju, got %ju at byte 26",
                           limits[i].name, (uintmax_t)limits[i].max, (uintmax_t)limits[i].max + 1);
        check_refused_fields(EVENT_DEVICE, &fields, text_string(&wanted));
        text_finish(&wanted);
    }
}

static void long_numbers_are_refused(void **state)
{
    struct text fields = {0};

    (void)state;
    append_number_field(&fields, JOURNAL_LEASE, 7, 8);
    fields.bytes[2] = 9;
    append_little(&fields, 0, 1);
    check_refused_fields(EVENT_RELEASED, &fields,
                         "journal: expected lease of at most 8 bytes, got 9 at byte 26");
    append_number_field(&fields, REQUEST_TAG_MIN_CAP, UINT64_C(1) << 32, 5);
    check_refused_request(
        &fields, "journal: expected min_cap of at most 4294967295, got 4294967296 at byte 32");
    append_number_field(&fields, REQUEST_TAG_SHARING, 3, 1);
    check_refused_request(&fields, "journal: expected sharing of at most 2, got 3 at byte 32");
}

static void texts_have_limits(void **state)
{
    char text[REQUEST_TEXT_MAX + 1];
    struct text fields = {0};

    (void)state;
    append_field(&fields, REQUEST_TAG_MODEL, "A\0B", 3);
    check_refused_request(&fields, "journal: expected model of at most 255 bytes without a zero, "
                                   "got 'A?B' at byte 32");
    memset(text, 'a', sizeof(text));
    append_field(&fields, REQUEST_TAG_NAME, text, sizeof(text));
    check_refused_request(&fields,
                          "journal: expected name of at most 255 bytes without a zero, got "
                          "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...' at "
                          "byte 32");
}

static void lists_have_limits(void **state)
{
    static const char zeros[4 * (JOURNAL_SLOTS_MAX + 1)];
    struct text fields = {0};

    (void)state;
    append_field(&fields, JOURNAL_SLOTS, zeros, 6);
    check_refused_fields(EVENT_GRANTED, &fields,
                         "journal: expected slots as at most 1000000 times 4 bytes, got 6 bytes at "
                         "byte 26");
    append_field(&fields, JOURNAL_SLOTS, zeros, sizeof(zeros));
    check_refused_fields(EVENT_GRANTED, &fields,
                         "journal: expected slots as at most 1000000 times 4 bytes, got 4000004 "
                         "bytes at byte 26");
    append_field(&fields, REQUEST_TAG_AVOIDED, zeros, (size_t)9 * (DEVICE_ID_LIST_MAX + 1));
    check_refused_request(&fields,
                          "journal: expected avoided as at most 4096 times 9 bytes, got 36873 "
                          "bytes at byte 32");
}

static void check_refused_id(uint64_t vendor, uint64_t index, uint64_t mig, const char *message)
{
    struct text ids = {0};
    struct text fields = {0};

    append_little(&ids, VENDOR_AMD, 1);
    append_little(&ids, 3, 4);
    append_little(&ids, DEVICE_NO_MIG, 4);
    append_little(&ids, vendor, 1);
    append_little(&ids, index, 4);
    append_little(&ids, mig, 4);
    append_field(&fields, REQUEST_TAG_WANTED, ids.bytes, ids.length);
    text_finish(&ids);
    check_refused_request(&fields, message);
}

static void ids_are_checked(void **state)
{
    (void)state;
    check_refused_id(5, 1, 2,
                     "journal: expected a device id in wanted, got vendor 5, index 1, MIG 2 at "
                     "byte 41");
    check_refused_id(0, 1000000, 2,
                     "journal: expected a device id in wanted, got vendor 0, index 1000000, MIG 2 "
                     "at byte 41");
    check_refused_id(0, 1, UINT32_MAX - 1,
                     "journal: expected a device id in wanted, got vendor 0, index 1, MIG "
                     "4294967294 at byte 41");
}

static void check_not_encoded(const struct engine_event *event)
{
    struct text bytes = {0};

    assert_int_equal(journal_encode(event, &bytes), BERTH_ERROR_INVALID);
    assert_int_equal(bytes.length, 0);
    text_finish(&bytes);
}

static void what_could_not_be_read_is_not_written(void **state)
{
    char text[REQUEST_TEXT_MAX + 2] = {0};
    struct device_id ids[DEVICE_ID_LIST_MAX + 1] = {0};
    struct device_id_list mask = {.items = ids, .count = DEVICE_ID_LIST_MAX + 1};
    struct party party = {.mask = &mask};
    struct request what = {.name = text};
    struct engine_event event = {.type = EVENT_REQUEST, .what = &what};

    (void)state;
    check_not_encoded(&(struct engine_event){.type = (enum event_type)0});
    check_not_encoded(&(struct engine_event){.type = EVENT_TYPES});
    check_not_encoded(&(struct engine_event){.type = EVENT_DEVICE, .blocks = BLOCK_ALL + 1});
    check_not_encoded(&(struct engine_event){.type = EVENT_DEVICE, .health = 3});
    check_not_encoded(&(struct engine_event){.type = EVENT_REQUEST, .share = SHARE_WHOLE + 1});
    memset(text, 'a', sizeof(text) - 1);
    check_not_encoded(&event);
    what = (struct request){.priority = (enum priority)(PRIORITY_HIGH + 1)};
    check_not_encoded(&event);
    event = (struct engine_event){.type = EVENT_REQUEST, .party = &party};
    check_not_encoded(&event);
    mask.count = 1;
    ids[0].index = DEVICE_INDEX_MAX + 1;
    check_not_encoded(&event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_fields_have_defaults),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(unknown_types_are_told),
        cmocka_unit_test(numbers_may_have_zeros_at_the_high_end),
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(fields_stay_within_the_record),
        cmocka_unit_test(known_fields_come_once),
        cmocka_unit_test(mandatory_fields_must_be_known),
        cmocka_unit_test(numbers_have_limits),
        cmocka_unit_test(long_numbers_are_refused),
        cmocka_unit_test(texts_have_limits),
        cmocka_unit_test(lists_have_limits),
        cmocka_unit_test(ids_are_checked),
        cmocka_unit_test(what_could_not_be_read_is_not_written),
    };

    return cmocka_run_group_tests_name("journal_foreign", tests, NULL, NULL);
}
