/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "engine/journal/journal.h"

#include <berth/error.h>
#include <string.h>

#include "base/count.h"
#include "support/assert_hex.h"
#include "support/engine/events.h"
#include "support/engine/sample_events.h"
#include "support/exact_copy.h"
#include "support/failing_allocator.h"
#include "support/steps.h"

static struct text encoded(const struct engine_event *event)
{
    struct text bytes = {0};

    assert_int_equal(journal_encode(event, &bytes), 0);
    return bytes;
}

/* Decodes the only record in the bytes; the caller finishes it. */
static struct journal_record decoded(const char *bytes, size_t length)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct journal_record record = {0};
    size_t used = 0;
    char *copy = exact_copy(bytes, length);
    int code = journal_decode(copy, length, &record, &used, &error);

    free(copy);
    assert_string_equal(error.message, "");
    assert_int_equal(code, JOURNAL_COMPLETE);
    assert_int_equal(used, length);
    return record;
}

static void check_round_trip(const struct engine_event *event)
{
    struct text bytes = encoded(event);
    struct journal_record record = decoded(bytes.bytes, bytes.length);
    struct text again = encoded(&record.event);

    assert_false(record.unknown);
    assert_true(event_equals(event, &record.event));
    assert_int_equal(bytes.length, again.length);
    assert_memory_equal(bytes.bytes, again.bytes, again.length);
    journal_record_finish(&record);
    text_finish(&again);
    text_finish(&bytes);
}

static void every_type_comes_back(void **state)
{
    (void)state;
    for (enum event_type type = EVENT_REQUEST; type < EVENT_TYPES; type++) {
        struct engine_event bare = {.type = type};
        struct sample sample;

        check_round_trip(&bare);
        sample_of(type, &sample);
        check_round_trip(&sample.event);
        sample_finish(&sample);
    }
}

static void plain_and_empty_values_come_back(void **state)
{
    struct device_id_list nothing = {0};
    struct request plain;
    struct party party = {.mask = &nothing};
    struct engine_event event = {.type = EVENT_REQUEST, .what = &plain, .party = &party};
    struct journal_record record;
    struct text bytes;

    (void)state;
    request_init(&plain);
    plain.name = copy_of("");
    plain.wait = optional_number_of(0);
    plain.min_cap.known = true;
    check_round_trip(&event);
    bytes = encoded(&event);
    record = decoded(bytes.bytes, bytes.length);
    assert_string_equal(record.event.what->name, "");
    assert_null(record.event.what->model);
    assert_true(record.event.what->wait.known);
    assert_false(record.event.what->time.known);
    assert_non_null(record.event.party->mask);
    assert_null(record.event.party->groups);
    journal_record_finish(&record);
    assert_null(record.event.what);
    journal_record_finish(&record);
    text_finish(&bytes);
    request_finish(&plain);
    check_round_trip(&event);
    plain = (struct request){0};
    check_round_trip(&event);
}

static void times_are_signed(void **state)
{
    struct engine_event event = {.type = EVENT_QUEUED, .time = INT64_MIN, .deadline = -1};

    (void)state;
    check_round_trip(&event);
    event.time = INT64_MAX;
    event.deadline = INT64_MIN;
    check_round_trip(&event);
}

static void the_longest_values_come_back(void **state)
{
    static uint32_t many[JOURNAL_SLOTS_MAX + 1];
    struct party party = {.groups = many, .group_count = JOURNAL_GROUPS_MAX};
    struct engine_event event = {
        .type = EVENT_GRANTED, .party = &party, .slots = many, .slot_count = JOURNAL_SLOTS_MAX};
    struct text bytes = {0};

    (void)state;
    for (uint32_t i = 0; i < COUNT(many); i++)
        many[i] = i * 4099;
    check_round_trip(&event);
    event.slot_count++;
    assert_int_equal(journal_encode(&event, &bytes), BERTH_ERROR_INVALID);
    event.slot_count = 0;
    party.group_count++;
    assert_int_equal(journal_encode(&event, &bytes), BERTH_ERROR_INVALID);
    assert_int_equal(bytes.length, 0);
    text_finish(&bytes);
}

static void check_bytes(const struct engine_event *event, const char *wanted)
{
    struct text bytes = encoded(event);

    assert_hex(&bytes, wanted);
    text_finish(&bytes);
}

/* Files of every version must stay readable: if this test fails, the code is wrong. */
static void bytes_stay_as_they_are(void **state)
{
    struct sample sample;

    (void)state;
    sample_of(EVENT_RELEASED, &sample);
    check_bytes(&sample.event, "b10a0f000000138951d163b780a7ff44f2ca861802000100000007");
    sample_of(EVENT_QUEUED, &sample);
    check_bytes(&sample.event, "b103160000004d954a5eacad80a7ff44f2ca8618010001000000030300010000"
                               "0002");
    sample_of(EVENT_GRANTED, &sample);
    check_bytes(&sample.event, "b104270000000794df0a169780a7ff44f2ca8618010001000000030200010000"
                               "00070300010000000206000400000000000000");
    sample_of(EVENT_RETURNED, &sample);
    check_bytes(
        &sample.event,
        "b1101d000000b5ae7c8a5c8880a7ff44f2ca8618010001000000030200010000000703000100000002");
    check_bytes(&(struct engine_event){.type = EVENT_REQUEST, .request = 2, .share = 250000},
                "b10118000000813baee16eaa00000000000000000300010000000213000300000090d003");
    sample_of(EVENT_REQUEST, &sample);
    check_bytes(&sample.event, "b1017c01000060d331a281d780a7ff44f2ca86180300010000000204002c0100"
                               "000100010000000202000100000004030001000000010400010000000305001b"
                               "0000000000000000ffffffff0101000000ffffffff0402000000ffffffff0600"
                               "0900000000000000000300000007000100000002080001000000040900040000"
                               "00413130300a0005000000000000000a0b000500000000000000140c00030000"
                               "000a00080d0001000000020e000300000090d0030f0004000000000000401000"
                               "0100000003110001000000031200050000006669727374130004000000746561"
                               "6d14000100000001150001000000011600010000000117000100000001180001"
                               "00000005190001000000061a0005000000747261696e1b0002000000a00f1c00"
                               "04000000000000801d000d0000002f72756e2f6d70732f706970651e000c0000"
                               "002f72756e2f6d70732f6c6f67050035000000010002000000e8030200080000"
                               "0064000000ffffffff0300120000000100000000ffffffff0001000000020000"
                               "0004000100000006");
    sample_finish(&sample);
}

/* Grants a claim that waited, with ids of a busy machine after a week. */
static void ordinary_records_are_small(void **state)
{
    struct sample sample;
    struct text bytes;

    (void)state;
    sample_of(EVENT_QUEUED, &sample);
    sample.event.claim = 12345678;
    sample.event.request = 12345678;
    bytes = encoded(&sample.event);
    assert_in_range(bytes.length, 1, 55);
    text_finish(&bytes);
    sample_of(EVENT_GRANTED, &sample);
    sample.event.claim = 12345678;
    sample.event.lease = 12345679;
    sample.event.request = 12345678;
    bytes = encoded(&sample.event);
    assert_in_range(bytes.length, 1, 63);
    text_finish(&bytes);
}

static void records_follow_one_another(void **state)
{
    struct text bytes = {0};
    size_t at = 0;

    (void)state;
    for (enum event_type type = EVENT_REQUEST; type < EVENT_TYPES; type++) {
        struct sample sample;

        sample_of(type, &sample);
        assert_int_equal(journal_encode(&sample.event, &bytes), 0);
        sample_finish(&sample);
    }
    for (enum event_type type = EVENT_REQUEST; type < EVENT_TYPES; type++) {
        struct journal_record record;
        size_t used;

        assert_int_equal(journal_decode(bytes.bytes + at, bytes.length - at, &record, &used, NULL),
                         JOURNAL_COMPLETE);
        assert_int_equal(record.event.type, type);
        journal_record_finish(&record);
        at += used;
    }
    assert_int_equal(at, bytes.length);
    text_finish(&bytes);
}

static void check_torn(const struct engine_event *event)
{
    struct text bytes = encoded(event);

    for (size_t length = 0; length < bytes.length; length++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct journal_record record = {.event.lease = 4711};
        size_t used = 4711;
        char *copy = exact_copy(bytes.bytes, length);

        assert_int_equal(journal_decode(copy, length, &record, &used, &error), JOURNAL_INCOMPLETE);
        assert_int_equal(record.event.lease, 4711);
        assert_int_equal(used, 4711);
        assert_string_equal(error.message, "");
        free(copy);
    }
    text_finish(&bytes);
}

static void a_torn_record_wants_more(void **state)
{
    (void)state;
    assert_int_equal(journal_decode(NULL, 0, NULL, NULL, NULL), JOURNAL_INCOMPLETE);
    for (enum event_type type = EVENT_REQUEST; type < EVENT_TYPES; type++) {
        struct sample sample;

        sample_of(type, &sample);
        check_torn(&sample.event);
        sample_finish(&sample);
    }
}

/* Because of the guard, a damaged length is not mistaken for a torn record. */
static void check_flips(const struct engine_event *event)
{
    struct text bytes = encoded(event);

    for (size_t bit = 0; bit < 8 * bytes.length; bit++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct journal_record record = {.event.lease = 4711};
        size_t used = 4711;

        bytes.bytes[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_equal(journal_decode(bytes.bytes, bytes.length, &record, &used, &error),
                         BERTH_ERROR_SYNTAX);
        assert_int_equal(error.code, BERTH_ERROR_SYNTAX);
        assert_int_equal(strncmp(error.message, "journal: expected ", 16), 0);
        assert_non_null(strstr(error.message, " at byte "));
        assert_int_equal(record.event.lease, 4711);
        assert_int_equal(used, 4711);
        bytes.bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    text_finish(&bytes);
}

static void every_flipped_bit_is_seen(void **state)
{
    (void)state;
    for (enum event_type type = EVENT_REQUEST; type < EVENT_TYPES; type++) {
        struct sample sample;

        sample_of(type, &sample);
        check_flips(&sample.event);
        sample_finish(&sample);
    }
}

static void random_events_come_back(void **state)
{
    struct test_random random = {17};

    (void)state;
    for (unsigned long step = test_steps(5000); step > 0; step--) {
        struct sample sample;

        sample_randomise(&sample, &random);
        check_round_trip(&sample.event);
        sample_finish(&sample);
    }
}

static int encode_full(void *context)
{
    struct text bytes = {0};
    int code = journal_encode(context, &bytes);

    assert_false(text_failed(&bytes));
    assert_true(code == 0 || bytes.length == 0);
    text_finish(&bytes);
    return code;
}

static int decode_full(void *context)
{
    const struct text *bytes = context;
    struct berth_error error = BERTH_ERROR_INIT;
    struct journal_record record = {.event.lease = 4711};
    size_t used = 4711;
    int code = journal_decode(bytes->bytes, bytes->length, &record, &used, &error);

    assert_int_equal(error.code, code < 0 ? code : 0);
    if (code == JOURNAL_COMPLETE)
        journal_record_finish(&record);
    else
        assert_true(record.event.lease == 4711 && used == 4711);
    return code == JOURNAL_COMPLETE ? 0 : code;
}

static void no_memory_leaves_nothing(void **state)
{
    struct sample sample;
    struct text bytes;

    (void)state;
    sample_of(EVENT_REQUEST, &sample);
    sample.event.slots = sample.slots;
    sample.event.slot_count = SAMPLE_ITEMS;
    bytes = encoded(&sample.event);
    assert_in_range(failing_allocator_try_all(encode_full, &sample.event), 1, 20);
    /* One for each: request, 2 lists, 6 texts, party, its groups, mask, the mask's ids, slots. */
    assert_int_equal(failing_allocator_try_all(decode_full, &bytes), 14);
    text_finish(&bytes);
    sample_finish(&sample);
}

/* The text keeps its old content, and can still be appended to. */
static void a_failed_record_is_taken_back(void **state)
{
    struct engine_event good = {.type = EVENT_RELEASED, .lease = 7};
    struct engine_event bad = {.type = EVENT_REFUSED, .reason = REFUSAL_PARENT_ENDED + 1};
    static uint32_t slots[1000];
    struct engine_event large = {.type = EVENT_GRANTED, .slots = slots, .slot_count = COUNT(slots)};
    struct text bytes = encoded(&good);
    size_t length = bytes.length;

    (void)state;
    assert_int_equal(journal_encode(&bad, &bytes), BERTH_ERROR_INVALID);
    assert_int_equal(bytes.length, length);
    failing_allocator_start(1);
    assert_int_equal(journal_encode(&large, &bytes), BERTH_ERROR_MEMORY);
    failing_allocator_stop();
    assert_int_equal(bytes.length, length);
    assert_int_equal(bytes.bytes[length], '\0');
    assert_int_equal(journal_encode(&good, &bytes), 0);
    assert_int_equal(bytes.length, 2 * length);
    assert_memory_equal(bytes.bytes, bytes.bytes + length, length);
    bytes.failed = true;
    assert_int_equal(journal_encode(&good, &bytes), BERTH_ERROR_MEMORY);
    assert_true(text_failed(&bytes));
    text_finish(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back),
        cmocka_unit_test(plain_and_empty_values_come_back),
        cmocka_unit_test(times_are_signed),
        cmocka_unit_test(the_longest_values_come_back),
        cmocka_unit_test(bytes_stay_as_they_are),
        cmocka_unit_test(ordinary_records_are_small),
        cmocka_unit_test(records_follow_one_another),
        cmocka_unit_test(a_torn_record_wants_more),
        cmocka_unit_test(every_flipped_bit_is_seen),
        cmocka_unit_test(random_events_come_back),
        cmocka_unit_test(no_memory_leaves_nothing),
        cmocka_unit_test(a_failed_record_is_taken_back),
    };

    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
