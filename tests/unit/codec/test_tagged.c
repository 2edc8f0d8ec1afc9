/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "codec/tagged.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/exact_copy.h"
#include "support/failing_allocator.h"
#include "support/wire/tagged_bytes.h"
#include "support/wire/tagged_whole.h"

static int read_bytes(const char *bytes, size_t length, uint32_t type_bit, struct whole *whole,
                      struct berth_error *error)
{
    char *copy = exact_copy(bytes == NULL ? "" : bytes, length);
    struct tagged_reading reading = {(unsigned char *)copy, type_bit, error};
    int code = tagged_read(&reading, &whole_table, (struct tagged_span){0, length}, whole);

    free(copy);
    return code;
}

/* Reads fields, which must be valid, and finishes them; the caller finishes the struct. */
static struct whole taken(struct text *fields)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct whole whole = {0};
    int code = read_bytes(fields->bytes, fields->length, SECOND_TYPE, &whole, &error);

    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    text_finish(fields);
    return whole;
}

/* Checks that the fields are refused with this message, and finishes them. */
static void check_refused(struct text *fields, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct whole whole = {0};

    assert_fails(read_bytes(fields->bytes, fields->length, SECOND_TYPE, &whole, &error),
                 BERTH_ERROR_SYNTAX, &error, message);
    tagged_finish(&whole_table, &whole);
    whole = (struct whole){0};
    assert_int_equal(read_bytes(fields->bytes, fields->length, SECOND_TYPE, &whole, NULL),
                     BERTH_ERROR_SYNTAX);
    tagged_finish(&whole_table, &whole);
    text_finish(fields);
}

static struct text written(const struct whole *whole, uint32_t type_bit)
{
    struct text fields = {0};

    assert_int_equal(tagged_write(&whole_table, type_bit, whole, &fields), 0);
    assert_false(text_failed(&fields));
    return fields;
}

static void every_kind_comes_back(void **state)
{
    struct whole whole = full_whole();
    struct text fields = written(&whole, SECOND_TYPE);
    struct text again;

    (void)state;
    check_full(&whole);
    tagged_finish(&whole_table, &whole);
    again = (struct text){0};
    text_append_bytes(&again, fields.bytes, fields.length);
    whole = taken(&again);
    check_full(&whole);
    again = written(&whole, SECOND_TYPE);
    assert_int_equal(again.length, fields.length);
    assert_memory_equal(again.bytes, fields.bytes, fields.length);
    tagged_finish(&whole_table, &whole);
    text_finish(&again);
    text_finish(&fields);
}

/* Only the id of an empty struct is written, because it has no default. */
static void defaults_are_left_out(void **state)
{
    struct whole whole = {0};
    struct text fields = written(&whole, SECOND_TYPE);

    (void)state;
    assert_int_equal(fields.length, TAGGED_FIELD_SIZE + 9);
    text_finish(&fields);
    fields = written(&whole, FIRST_TYPE); /* this type has a default other than 0 */
    assert_int_equal(fields.length, 2 * TAGGED_FIELD_SIZE + 9);
    text_finish(&fields);
    whole.preset = 7;
    fields = written(&whole, FIRST_TYPE);
    assert_int_equal(fields.length, TAGGED_FIELD_SIZE + 9);
    whole.preset = 0;
    assert_int_equal(read_bytes(fields.bytes, fields.length, FIRST_TYPE, &whole, NULL), 0);
    assert_int_equal(whole.preset, 7);
    tagged_finish(&whole_table, &whole);
    text_finish(&fields);
}

static void nothing_reads_as_defaults(void **state)
{
    struct text nothing = {0};
    struct whole whole = taken(&nothing);

    (void)state;
    assert_true(whole.wide == 0 && whole.preset == 0 && !whole.maybe.known && !whole.cap.known);
    assert_true(whole.text == NULL && whole.list == NULL && whole.list_count == 0);
    assert_true(whole.maybe_ids == NULL && whole.below == NULL && !whole.pci.known);
    assert_true(!whole.figure.known && whole.strings.count == 0 && whole.items.count == 0);
    tagged_finish(&whole_table, &whole);
    tagged_finish(&whole_table, &whole);
}

/* An empty value differs from a missing one, if its kind has both. */
static void empty_values_are_told_from_none(void **state)
{
    static const unsigned empty[] = {TAG_WIDE, TAG_MAYBE,     TAG_CAP,     TAG_TEXT, TAG_LIST,
                                     TAG_IDS,  TAG_MAYBE_IDS, TAG_STRINGS, TAG_ITEMS};
    struct text fields = {0};
    struct whole whole;

    (void)state;
    for (size_t i = 0; i < COUNT(empty); i++)
        append_field(&fields, empty[i], NULL, 0);
    whole = taken(&fields);
    assert_true(whole.maybe.known && whole.maybe.value == 0);
    assert_true(whole.cap.known && whole.cap.major == 0);
    assert_string_equal(whole.text, "");
    assert_non_null(whole.maybe_ids);
    assert_int_equal(whole.maybe_ids->count, 0);
    assert_true(whole.list == NULL && whole.ids.count == 0 && whole.items.count == 0);
    fields = written(&whole, SECOND_TYPE);
    assert_int_equal(fields.length, 5 * TAGGED_FIELD_SIZE + 9);
    text_finish(&fields);
    tagged_finish(&whole_table, &whole);
}

static void zeros_at_the_high_end_do_not_matter(void **state)
{
    struct text fields = {0};
    struct whole whole;

    (void)state;
    append_number_field(&fields, TAG_TINY, 0xFE, 8);
    append_number_field(&fields, TAG_MAYBE, 300, 3);
    append_number_field(&fields, TAG_TIME, (uint64_t)-1, 8);
    whole = taken(&fields);
    assert_int_equal(whole.tiny, 0xFE);
    assert_int_equal(whole.maybe.value, 300);
    assert_true(whole.time == -1);
    tagged_finish(&whole_table, &whole);
}

static void the_order_does_not_matter(void **state)
{
    struct text fields = {0};
    struct whole whole;

    (void)state;
    append_number_field(&fields, TAG_TINY, 5, 1);
    append_number_field(&fields, TAG_WIDE, 6, 1);
    whole = taken(&fields);
    assert_true(whole.tiny == 5 && whole.wide == 6);
    tagged_finish(&whole_table, &whole);
}

static void unknown_tags_are_skipped(void **state)
{
    struct text fields = {0};
    struct whole whole;

    (void)state;
    append_field(&fields, 0, "x", 1);
    append_field(&fields, 40, "within the table", 16);
    append_field(&fields, 40, "and again", 9);
    append_field(&fields, 64, NULL, 0);
    append_field(&fields, TAGGED_MANDATORY - 1, NULL, 0);
    append_number_field(&fields, TAG_WIDE, 6, 1);
    whole = taken(&fields);
    assert_true(whole.wide == 6);
    tagged_finish(&whole_table, &whole);
}

static void mandatory_tags_are_not(void **state)
{
    struct text fields = {0};

    (void)state;
    append_field(&fields, TAGGED_MANDATORY, "x", 1);
    check_refused(&fields, "expected fields that this version knows, got mandatory field 32768 at "
                           "byte 0");
    append_number_field(&fields, TAG_WIDE, 6, 1);
    append_field(&fields, UINT16_MAX, NULL, 0);
    check_refused(&fields, "expected fields that this version knows, got mandatory field 65535 at "
                           "byte 7");
}

static void known_tags_come_once(void **state)
{
    (void)state;
    for (unsigned tag = TAG_WIDE; tag <= TAG_WORDS; tag++) {
        struct whole full = full_whole();
        struct text fields = written(&full, SECOND_TYPE);
        struct text twice = {0};
        struct berth_error error = BERTH_ERROR_INIT;
        struct whole whole = {0};

        text_append_bytes(&twice, fields.bytes, fields.length);
        append_field(&twice, tag, NULL, 0);
        assert_int_equal(read_bytes(twice.bytes, twice.length, SECOND_TYPE, &whole, &error),
                         BERTH_ERROR_SYNTAX);
        assert_non_null(strstr(error.message, " once, got it again at byte "));
        tagged_finish(&whole_table, &whole);
        tagged_finish(&whole_table, &full);
        text_finish(&twice);
        text_finish(&fields);
    }
}

static void fields_stay_within(void **state)
{
    struct text fields = {0};

    (void)state;
    text_append_repeated(&fields, '\1', 5);
    check_refused(&fields, "expected a field of at least 6 bytes, got 5 at byte 0");
    append_little(&fields, TAG_TEXT, 2);
    append_little(&fields, UINT32_MAX, 4);
    text_append(&fields, "text");
    check_refused(&fields, "expected a value of at most 4 bytes, got 4294967295 at byte 0");
    append_number_field(&fields, TAG_WIDE, 6, 1);
    append_little(&fields, 1000, 2);
    append_little(&fields, 1, 4);
    check_refused(&fields, "expected a value of at most 0 bytes, got 1 at byte 7");
}

/* Checks that this value of a tag is refused with this message. */
static void check_value(unsigned tag, const void *value, size_t length, const char *message)
{
    struct text fields = {0};

    append_field(&fields, tag, value, length);
    check_refused(&fields, message);
}

static void values_have_limits(void **state)
{
    static const char zeros[27];

    (void)state;
    check_value(TAG_WIDE, zeros, 9, "expected wide of at most 8 bytes, got 9 at byte 6");
    check_value(TAG_MIDDLE, "\xE9\x03", 2, "expected middle of at most 1000, got 1001 at byte 6");
    check_value(TAG_NARROW, "\0\0\1", 3, "expected narrow of at most 65535, got 65536 at byte 6");
    check_value(TAG_FLAG, "\2", 1, "expected flag of at most 1, got 2 at byte 6");
    check_value(TAG_MAYBE, "\xF5\1", 2, "expected maybe of at most 500, got 501 at byte 6");
    check_value(TAG_CAP, "\0\0\0\0\1", 5,
                "expected cap of at most 4294967295, got 4294967296 at byte 6");
    check_value(TAG_TEXT, "123456789", 9,
                "expected text of at most 8 bytes without a zero, got '123456789' at byte 6");
    check_value(TAG_WORDS, "123456", 6,
                "expected words of at most 5 bytes without a zero, got '123456' at byte 6");
    check_value(TAG_TEXT, "a\0b", 3,
                "expected text of at most 8 bytes without a zero, got 'a?b' at byte 6");
    check_value(TAG_LIST, zeros, 16,
                "expected list as at most 3 times 4 bytes, got 16 bytes at byte 6");
    check_value(TAG_LIST, zeros, 3,
                "expected list as at most 3 times 4 bytes, got 3 bytes at byte 6");
    check_value(TAG_IDS, zeros, 27,
                "expected ids as at most 2 times 9 bytes, got 27 bytes at byte 6");
    check_value(TAG_MAYBE_IDS, zeros, 10,
                "expected maybe_ids as at most 2 times 9 bytes, got 10 bytes at byte 6");
}

static void parts_of_devices_are_checked(void **state)
{
    static const char zeros[27];

    (void)state;
    check_value(TAG_ID, zeros, 8, "expected id of 9 bytes, got 8 at byte 6");
    check_value(TAG_ID, NULL, 0, "expected id of 9 bytes, got 0 at byte 6");
    check_value(TAG_ID, "\5\0\0\0\0\0\0\0\0", 9,
                "expected a device id in id, got vendor 5, index 0, MIG 0 at byte 6");
    check_value(TAG_IDS, "\0\0\0\0\0\0\0\0\0\0\x40\x42\x0F\0\0\0\0\0", 18,
                "expected a device id in ids, got vendor 0, index 1000000, MIG 0 at byte 15");
    check_value(TAG_PCI, zeros, 8, "expected pci of 7 bytes, got 8 at byte 6");
    check_value(TAG_PCI, "\0\0\0\0\0\x20\0", 7,
                "expected pci with a device below 32 and a function below 8, got 32 and 0 at byte "
                "6");
    check_value(TAG_PCI, "\0\0\0\0\0\0\x08", 7,
                "expected pci with a device below 32 and a function below 8, got 0 and 8 at byte "
                "6");
    check_value(TAG_FIGURE, zeros, 15, "expected figure of 16 bytes, got 15 at byte 6");
}

static void rows_are_checked(void **state)
{
    static const char zeros[12];

    (void)state;
    check_value(TAG_STRINGS, zeros, 12, "expected at most 2 of strings, got more at byte 18");
    check_value(TAG_STRINGS, "\1\0\0\0\0", 5,
                "expected strings without a zero, got one at byte 10");
    check_value(TAG_STRINGS, "\0\0\0\0\0\0\0", 7,
                "expected a part of strings within its 3 bytes, got one of 0 at byte 10");
    check_value(TAG_STRINGS, "\2\0\0\0a", 5,
                "expected a part of strings within its 5 bytes, got one of 2 at byte 6");
    check_value(TAG_STRINGS, "\xFF\xFF\xFF\xFF", 4,
                "expected a part of strings within its 4 bytes, got one of 4294967295 at byte 6");
    check_value(TAG_ITEMS, "\1\0\0\0", 4,
                "expected a part of items within its 4 bytes, got one of 1 at byte 6");
    check_value(TAG_ITEMS, "\2\0\0\0ab", 6,
                "expected a field of at least 6 bytes, got 2 at byte 10");
    /* The value is there, but the item ends before. */
    check_value(TAG_ITEMS, "\6\0\0\0\3\0\1\0\0\0a", 11,
                "expected a value of at most 0 bytes, got 1 at byte 10");
}

static void there_are_so_many_items_at_most(void **state)
{
    struct text row = {0};
    struct text fields = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        append_little(&row, TAGGED_FIELD_SIZE, 4);
        append_field(&row, PART_TEXT, NULL, 0);
    }
    append_field(&fields, TAG_ITEMS, row.bytes, row.length);
    text_finish(&row);
    check_refused(&fields, "expected at most 2 of items, got more at byte 30");
}

static void required_fields_are_there(void **state)
{
    (void)state;
    check_value(TAG_BELOW, NULL, 0, "expected text, got none in the 0 bytes at byte 6");
    check_value(TAG_BELOW, "\1\0\1\0\0\0\5", 7, "expected text, got none in the 7 bytes at byte 6");
    check_value(TAG_ITEMS, "\0\0\0\0", 4, "expected text, got none in the 0 bytes at byte 10");
}

static void words_are_cut(void **state)
{
    static const struct {
        const char *given;
        const char *wanted;
    } words[] = {{"", ""}, {"12345", "12345"}, {"123456", "12..."}, {"1\xC3\xA4xyz", "1..."}};

    (void)state;
    for (size_t i = 0; i < COUNT(words); i++) {
        struct whole whole = {.words = (char *)words[i].given};
        struct text fields = written(&whole, SECOND_TYPE);

        whole = taken(&fields);
        assert_string_equal(whole.words, words[i].wanted);
        tagged_finish(&whole_table, &whole);
    }
}

static void check_not_written(const struct whole *whole)
{
    struct text fields = {0};

    assert_int_equal(tagged_write(&whole_table, SECOND_TYPE, whole, &fields), BERTH_ERROR_INVALID);
    text_finish(&fields);
}

static void what_could_not_be_read_is_not_written(void **state)
{
    static uint32_t list[4];
    static char text[] = "123456789";
    struct device_id ids[3] = {0};
    struct device_id_list many = {.items = ids, .count = 3};
    char *strings[3] = {text, text, text};
    struct part parts[3] = {{.text = text + 8}, {.text = text + 8}, {.text = text + 8}};
    struct part bad = {.count = 10, .text = text + 8};

    (void)state;
    check_not_written(&(struct whole){.middle = 1001});
    check_not_written(&(struct whole){.maybe = optional_number_of(501)});
    check_not_written(&(struct whole){.text = text});
    check_not_written(&(struct whole){.list = list, .list_count = 4});
    check_not_written(&(struct whole){.maybe_ids = &many});
    check_not_written(&(struct whole){.ids = many});
    check_not_written(&(struct whole){.id.index = DEVICE_INDEX_MAX + 1});
    check_not_written(&(struct whole){.pci = {.known = true, .device = 32}});
    check_not_written(&(struct whole){.pci = {.known = true, .function = 8}});
    check_not_written(&(struct whole){.strings = {.items = strings, .count = 3}});
    check_not_written(&(struct whole){.items = {.items = parts, .count = 3}});
    check_not_written(&(struct whole){.below = &bad});
    bad = (struct part){0};
    check_not_written(&(struct whole){.below = &bad});
    ids[0].vendor = (enum vendor)5;
    many.count = 1;
    check_not_written(&(struct whole){.ids = many});
}

static int write_full(void *context)
{
    struct text fields = {0};
    int code = tagged_write(&whole_table, SECOND_TYPE, context, &fields);

    assert_int_equal(code, 0);
    code = text_failed(&fields) ? BERTH_ERROR_MEMORY : 0;
    text_finish(&fields);
    return code;
}

static int read_full(void *context)
{
    const struct text *fields = context;
    struct berth_error error = BERTH_ERROR_INIT;
    struct tagged_reading reading = {(unsigned char *)fields->bytes, SECOND_TYPE, &error};
    struct whole whole = {0};
    int code = tagged_read(&reading, &whole_table, (struct tagged_span){0, fields->length}, &whole);

    assert_int_equal(error.code, code);
    if (code == 0)
        check_full(&whole);
    tagged_finish(&whole_table, &whole);
    return code;
}

static void no_memory_leaves_nothing(void **state)
{
    struct whole whole = full_whole();
    struct text fields = written(&whole, SECOND_TYPE);

    (void)state;
    assert_in_range(failing_allocator_try_all(write_full, &whole), 1, 10);
    /* One for each: text, words, list, ids, the optional ids and their list, part and its text,
     * two strings and their list, items and their two texts. */
    assert_int_equal(failing_allocator_try_all(read_full, &fields), 14);
    text_finish(&fields);
    tagged_finish(&whole_table, &whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back),
        cmocka_unit_test(defaults_are_left_out),
        cmocka_unit_test(nothing_reads_as_defaults),
        cmocka_unit_test(empty_values_are_told_from_none),
        cmocka_unit_test(zeros_at_the_high_end_do_not_matter),
        cmocka_unit_test(the_order_does_not_matter),
        cmocka_unit_test(unknown_tags_are_skipped),
        cmocka_unit_test(mandatory_tags_are_not),
        cmocka_unit_test(known_tags_come_once),
        cmocka_unit_test(fields_stay_within),
        cmocka_unit_test(values_have_limits),
        cmocka_unit_test(parts_of_devices_are_checked),
        cmocka_unit_test(rows_are_checked),
        cmocka_unit_test(there_are_so_many_items_at_most),
        cmocka_unit_test(required_fields_are_there),
        cmocka_unit_test(words_are_cut),
        cmocka_unit_test(what_could_not_be_read_is_not_written),
        cmocka_unit_test(no_memory_leaves_nothing),
    };

    return cmocka_run_group_tests_name("tagged", tests, NULL, NULL);
}
