/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of custom types, which belong to the program that keeps the journal.
 */
#include "support/unit.h"

#include "engine/journal/journal.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "support/assert_error.h"
#include "support/engine/events.h"
#include "support/failing_allocator.h"
#include "support/wire/tagged_whole.h"

static struct text door_record(unsigned type, const struct whole *whole)
{
    struct text bytes = {0};

    assert_int_equal(journal_encode_custom(type, -5, &whole_table, whole, &bytes), 0);
    return bytes;
}

static void records_of_the_door_come_back(void **state)
{
    (void)state;
    for (unsigned type = JOURNAL_CUSTOM_TYPES; type <= UINT8_MAX; type++) {
        struct whole whole = full_whole();
        struct text bytes = door_record(type, &whole);
        struct journal_record record = {0};
        size_t used = 0;

        tagged_finish(&whole_table, &whole);
        whole = (struct whole){0};
        assert_int_equal(journal_decode(bytes.bytes, bytes.length, &record, &used, NULL),
                         JOURNAL_COMPLETE);
        assert_int_equal(used, bytes.length);
        assert_true(record.unknown && record.event.type == type && record.event.time == -5);
        assert_ptr_equal(record.fields + record.fields_length, bytes.bytes + bytes.length);
        assert_int_equal(journal_decode_custom(&record, &whole_table, &whole, NULL), 0);
        check_full(&whole);
        tagged_finish(&whole_table, &whole);
        journal_record_finish(&record);
        assert_null(record.fields);
        text_finish(&bytes);
    }
}

/* Records of both kinds follow one another, and defaults apply to every type. */
static void records_of_the_door_stand_among_others(void **state)
{
    struct engine_event event = {.type = EVENT_RELEASED, .lease = 7};
    struct whole whole = {.preset = 7, .id = id_of("amd1")};
    struct text bytes = door_record(200, &whole);
    struct journal_record record;
    size_t door = bytes.length;
    size_t used;

    (void)state;
    assert_int_equal(door, JOURNAL_HEADER_SIZE + JOURNAL_TIME_SIZE + TAGGED_FIELD_SIZE + 9);
    assert_int_equal(journal_encode(&event, &bytes), 0);
    assert_int_equal(journal_decode(bytes.bytes, bytes.length, &record, &used, NULL),
                     JOURNAL_COMPLETE);
    assert_int_equal(used, door);
    whole = (struct whole){0};
    assert_int_equal(journal_decode_custom(&record, &whole_table, &whole, NULL), 0);
    assert_true(whole.preset == 7 && device_id_equals(whole.id, id_of("amd1")));
    tagged_finish(&whole_table, &whole);
    assert_int_equal(journal_decode(bytes.bytes + door, bytes.length - door, &record, &used, NULL),
                     JOURNAL_COMPLETE);
    assert_true(event_equals(&record.event, &event) && record.fields == NULL);
    journal_record_finish(&record);
    text_finish(&bytes);
}

static void records_of_the_door_are_checked(void **state)
{
    struct whole whole = {.preset = 7, .text = (char *)"text"};
    struct text bytes = door_record(128, &whole);
    struct berth_error error = BERTH_ERROR_INIT;
    struct journal_record record = {0};
    size_t used;

    (void)state;
    for (size_t length = 0; length < bytes.length; length++)
        assert_int_equal(journal_decode(bytes.bytes, length, &record, &used, NULL),
                         JOURNAL_INCOMPLETE);
    bytes.bytes[bytes.length - 1] ^= 1;
    assert_int_equal(journal_decode(bytes.bytes, bytes.length, &record, &used, NULL),
                     BERTH_ERROR_SYNTAX);
    bytes.bytes[bytes.length - 1] ^= 1;
    assert_int_equal(journal_decode(bytes.bytes, bytes.length, &record, &used, NULL),
                     JOURNAL_COMPLETE);
    record.fields_length--;
    whole = (struct whole){0};
    assert_fails(journal_decode_custom(&record, &whole_table, &whole, &error), BERTH_ERROR_SYNTAX,
                 &error, "journal: expected a value of at most 8 bytes, got 9 at byte 10");
    assert_string_equal(whole.text, "text");
    tagged_finish(&whole_table, &whole);
    text_finish(&bytes);
}

/* A record that no reader would accept is not written. */
static void records_of_the_door_have_limits(void **state)
{
    size_t length =
        JOURNAL_LENGTH_MAX - JOURNAL_TIME_SIZE - (TAGGED_FIELD_SIZE + 9) - TAGGED_FIELD_SIZE - 4;
    char *long_one = malloc(length + 2);
    struct whole whole = {.preset = 7, .strings = {.items = &long_one, .count = 1}};
    struct text bytes = {0};
    struct journal_record record;
    size_t used;

    (void)state;
    assert_non_null(long_one);
    memset(long_one, 'a', length + 1);
    long_one[length + 1] = '\0';
    assert_int_equal(journal_encode_custom(128, 0, &whole_table, &whole, &bytes),
                     BERTH_ERROR_INVALID);
    assert_int_equal(bytes.length, 0);
    long_one[length] = '\0';
    assert_int_equal(journal_encode_custom(128, 0, &whole_table, &whole, &bytes), 0);
    assert_int_equal(bytes.length, JOURNAL_HEADER_SIZE + JOURNAL_LENGTH_MAX);
    assert_int_equal(journal_decode(bytes.bytes, bytes.length, &record, &used, NULL),
                     JOURNAL_COMPLETE);
    text_clear(&bytes);
    whole.middle = 1001;
    assert_int_equal(journal_encode_custom(128, 0, &whole_table, &whole, &bytes),
                     BERTH_ERROR_INVALID);
    free(long_one);
    text_finish(&bytes);
}

static int encode_door(void *context)
{
    struct text bytes = {0};
    int code = journal_encode_custom(128, 0, &whole_table, context, &bytes);

    assert_false(text_failed(&bytes));
    assert_true(code == 0 || bytes.length == 0);
    text_finish(&bytes);
    return code;
}

static int decode_door(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct whole whole = {0};
    int code = journal_decode_custom(context, &whole_table, &whole, &error);

    assert_int_equal(error.code, code);
    tagged_finish(&whole_table, &whole);
    return code;
}

static void no_memory_leaves_nothing_of_the_door(void **state)
{
    struct whole whole = full_whole();
    struct text bytes = door_record(128, &whole);
    struct journal_record record;
    size_t used;

    (void)state;
    assert_in_range(failing_allocator_try_all(encode_door, &whole), 1, 10);
    assert_int_equal(journal_decode(bytes.bytes, bytes.length, &record, &used, NULL),
                     JOURNAL_COMPLETE);
    assert_int_equal(failing_allocator_try_all(decode_door, &record), 14);
    tagged_finish(&whole_table, &whole);
    text_finish(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_the_door_come_back),
        cmocka_unit_test(records_of_the_door_stand_among_others),
        cmocka_unit_test(records_of_the_door_are_checked),
        cmocka_unit_test(records_of_the_door_have_limits),
        cmocka_unit_test(no_memory_leaves_nothing_of_the_door),
    };

    return cmocka_run_group_tests_name("journal_custom", tests, NULL, NULL);
}
