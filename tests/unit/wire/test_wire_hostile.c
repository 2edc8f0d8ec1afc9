/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets that wire_encode does not make: of later versions, of broken programs and of bad people.
 */
#include "support/unit.h"

#include "wire/wire.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "codec/device_tags.h"
#include "codec/request_tags.h"
#include "support/assert_error.h"
#include "support/exact_copy.h"
#include "support/wire/sample_messages.h"
#include "support/wire/tagged_bytes.h"
#include "support/wire/wire_messages.h"
#include "wire/wire_tables.h"

/* Returns a packet of these fields, which begin at byte 16, and finishes the fields. */
static struct text packet_of(unsigned type, struct text *fields)
{
    struct text packet = {0};

    append_little(&packet, WIRE_VERSION, 1);
    append_little(&packet, type, 1);
    append_little(&packet, 0, 2);
    append_little(&packet, fields->length, 4);
    append_little(&packet, 1, 8);
    text_append_bytes(&packet, fields->bytes, fields->length);
    assert_false(text_failed(&packet) || text_failed(fields));
    text_finish(fields);
    return packet;
}

static void check_refused_packet(const char *bytes, size_t length, int wanted_code,
                                 const char *wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct wire_message message = {.id = 4711};
    char *copy = exact_copy(bytes, length);

    assert_fails(wire_decode(copy, length, &message, &error), wanted_code, &error, wanted);
    assert_int_equal(wire_decode(copy, length, &message, NULL), wanted_code);
    assert_true(message.id == 4711 && message.type == 0);
    free(copy);
}

/* Checks that a packet of these fields is refused, and finishes them. */
static void check_refused(unsigned type, struct text *fields, const char *wanted)
{
    struct text packet = packet_of(type, fields);

    check_refused_packet(packet.bytes, packet.length, BERTH_ERROR_SYNTAX, wanted);
    text_finish(&packet);
}

/* Decodes a packet of these fields, which must be valid, and finishes them. */
static struct wire_message taken(unsigned type, struct text *fields)
{
    struct text packet = packet_of(type, fields);
    struct berth_error error = BERTH_ERROR_INIT;
    struct wire_message message = {0};
    char *copy = exact_copy(packet.bytes, packet.length);

    wire_decode(copy, packet.length, &message, &error);
    assert_string_equal(error.message, "");
    free(copy);
    text_finish(&packet);
    return message;
}

static void headers_are_checked(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *wanted;
    } packets[] = {
        {"", 0, "message: expected at least 16 bytes, got 0"},
        {"\1", 1, "message: expected at least 16 bytes, got 1"},
        {"GET / HTTP/1.1\r", 15, "message: expected at least 16 bytes, got 15"},
        {"GET / HTTP/1.1\r\n\r\n", 18, "message: expected version 1, got 71"},
        {"\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, "message: expected version 1, got 0"},
        {"\2\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, "message: expected version 1, got 2"},
        {"\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, "message: expected a type above 0, got 0"},
        {"\1\1\0\0\1\0\0\0\0\0\0\0\0\0\0\0", 16,
         "message: expected 0 bytes after the header, got length 1"},
        {"\1\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17,
         "message: expected 1 bytes after the header, got length 0"},
        {"\1\1\0\0\xFF\xFF\xFF\xFF\0\0\0\0\0\0\0\0", 16,
         "message: expected 0 bytes after the header, got length 4294967295"},
        {"\1\1\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0", 17,
         "message: expected a field of at least 6 bytes, got 1 at byte 16"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(packets); i++)
        check_refused_packet(packets[i].bytes, packets[i].length, BERTH_ERROR_SYNTAX,
                             packets[i].wanted);
}

static void long_packets_are_refused(void **state)
{
    struct text fields = {0};
    struct text packet;
    struct wire_message message;

    (void)state;
    append_little(&fields, 1000, 2);
    append_little(&fields, WIRE_MESSAGE_MAX - 16 - 6, 4);
    text_append_repeated(&fields, 'a', WIRE_MESSAGE_MAX - 16 - 6);
    packet = packet_of(WIRE_HELLO, &fields);
    assert_int_equal(packet.length, WIRE_MESSAGE_MAX);
    assert_int_equal(wire_decode(packet.bytes, packet.length, &message, NULL), 0);
    wire_message_finish(&message);
    text_append_char(&packet, 'a');
    check_refused_packet(packet.bytes, packet.length, BERTH_ERROR_LIMIT,
                         "message: expected at most 131072 bytes, got 131073");
    text_finish(&packet);
}

static const char mandatory[] = "message: expected fields that this version knows, got mandatory "
                                "field 32768 at byte 16";

static void later_versions_are_understood_as_far_as_known(void **state)
{
    struct text fields = {0};
    struct text inner = {0};
    struct wire_message message;

    (void)state;
    append_field(&fields, 60, "later", 5);
    append_number_field(&fields, WIRE_TAG_PARENT, 7, 1);
    append_field(&fields, 0x7FFF, "later", 5);
    append_field(&inner, 500, "later", 5);
    append_number_field(&inner, REQUEST_TAG_GPUS_MAX, 2, 1);
    append_field(&fields, WIRE_TAG_REQUEST, inner.bytes, inner.length);
    text_finish(&inner);
    message = taken(WIRE_CLAIM, &fields);
    assert_int_equal(message.number, 1);
    assert_int_equal(message.parent, 7);
    assert_int_equal(message.request->gpus.max, 2);
    wire_message_finish(&message);
    append_field(&fields, 0x8000, NULL, 0);
    check_refused(WIRE_CLAIM, &fields, mandatory);
}

static void unknown_types_have_no_fields(void **state)
{
    struct text fields = {0};
    struct wire_message message;

    (void)state;
    append_number_field(&fields, WIRE_TAG_ID, 7, 1);
    message = taken(200, &fields);
    assert_true(wire_message_equals(
        &message, &(struct wire_message){.type = (enum wire_type)200, .number = 1}));
    assert_null(wire_type_name(message.type));
    append_field(&fields, 0x8000, NULL, 0);
    check_refused(200, &fields, mandatory);
}

/* Fields that the type does not use are skipped without a look at their values. */
static void fields_of_other_types_are_skipped(void **state)
{
    struct text fields = {0};
    struct wire_message message;

    (void)state;
    append_field(&fields, WIRE_TAG_SLOTS, "\xFF\xFF\xFF\xFF", 4);
    append_field(&fields, WIRE_TAG_REQUEST, "broken", 6);
    append_number_field(&fields, WIRE_TAG_ID, 7, 1);
    append_field(&fields, WIRE_TAG_HOLD, "nine bytes", 9);
    append_field(&fields, WIRE_TAG_TEXT, "a\0b", 3);
    append_field(&fields, WIRE_TAG_TEXT, "twice", 5);
    append_field(&fields, WIRE_TAG_TALLY, NULL, 0);
    message = taken(WIRE_WATCH, &fields);
    assert_true(wire_message_equals(
        &message, &(struct wire_message){.type = WIRE_WATCH, .number = 1, .id = 7}));
    wire_message_finish(&message);
}

static void packets_with_every_field_give_those_of_their_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sample_types); i++) {
        struct wire_message wanted;
        struct wire_message message;
        struct text fields = {0};

        message_fill_all(&message, sample_types[i]);
        assert_int_equal(tagged_write(&wire_tagged, TAGGED_ALL_TYPES, &message, &fields), 0);
        wire_message_finish(&message);
        message = taken(sample_types[i], &fields);
        message_fill(&wanted, sample_types[i]);
        message.number = wanted.number;
        assert_true(wire_message_equals(&message, &wanted));
        wire_message_finish(&wanted);
        wire_message_finish(&message);
    }
}

/* The daemon refuses unknown values that it would act on. */
static void values_to_act_by_are_checked(void **state)
{
    static const struct {
        unsigned type;
        unsigned tag;
        bool within; /* the request */
        uint64_t number;
        const char *wanted;
    } values[] = {
        {WIRE_CLAIM, WIRE_TAG_HOLD, false, 3,
         "message: expected hold of at most 2, got 3 at byte 22"},
        {WIRE_CLAIM, WIRE_TAG_RESUME, false, 2,
         "message: expected resume of at most 1, got 2 at byte 22"},
        {WIRE_RELEASE, WIRE_TAG_EXIT_CODE, false, 256,
         "message: expected exit_code of at most 255, got 256 at byte 22"},
        {WIRE_CLAIM, WIRE_TAG_PID, false, UINT32_MAX,
         "message: expected pid of at most 2147483647, got 4294967295 at byte 22"},
        {WIRE_LOOK, WIRE_TAG_SECTION, false, UINT64_C(1) << 32,
         "message: expected section of at most 4294967295, got 4294967296 at byte 22"},
        {WIRE_CLAIM, REQUEST_TAG_SHARING, true, 3,
         "message: expected sharing of at most 2, got 3 at byte 28"},
        {WIRE_CLAIM, REQUEST_TAG_VENDOR, true, 5,
         "message: expected vendor of at most 4, got 5 at byte 28"},
        {WIRE_CLAIM, REQUEST_TAG_VENDOR_RULE, true, 3,
         "message: expected vendor_rule of at most 2, got 3 at byte 28"},
        {WIRE_CLAIM, REQUEST_TAG_SCHEDULING, true, 4,
         "message: expected scheduling of at most 3, got 4 at byte 28"},
        {WIRE_CLAIM, REQUEST_TAG_PRIORITY, true, 4,
         "message: expected priority of at most 3, got 4 at byte 28"},
        {WIRE_CLAIM, REQUEST_TAG_ALL, true, 255,
         "message: expected gpus.all of at most 1, got 255 at byte 28"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(values); i++) {
        struct text field = {0};
        struct text fields = {0};

        append_number_field(&field, values[i].tag, values[i].number, 8);
        if (values[i].within)
            append_field(&fields, WIRE_TAG_REQUEST, field.bytes, field.length);
        else
            text_append_bytes(&fields, field.bytes, field.length);
        text_finish(&field);
        check_refused(values[i].type, &fields, values[i].wanted);
    }
}

static void lengths_within_may_lie(void **state)
{
    struct text fields = {0};

    (void)state;
    append_little(&fields, WIRE_TAG_REQUEST, 2);
    append_little(&fields, 7, 4);
    append_number_field(&fields, REQUEST_TAG_GPUS_MIN, 1, 0);
    check_refused(WIRE_CLAIM, &fields,
                  "message: expected a value of at most 6 bytes, got 7 at byte 16");
    append_little(&fields, WIRE_TAG_REQUEST, 2);
    append_little(&fields, 6, 4);
    append_number_field(&fields, REQUEST_TAG_GPUS_MIN, 1, 1); /* its byte is outside the request */
    check_refused(WIRE_CLAIM, &fields,
                  "message: expected a value of at most 0 bytes, got 1 at byte 22");
    append_field(&fields, WIRE_TAG_MASKS, "\xFF\xFF\xFF\x7F", 4);
    check_refused(WIRE_CLAIM, &fields,
                  "message: expected a part of masks within its 4 bytes, got one of "
                  "2147483647 at byte 22");
    append_field(&fields, WIRE_TAG_LEASES, "\4\0\0\0\1\0\1\0", 8);
    check_refused(WIRE_PAGE, &fields,
                  "message: expected a field of at least 6 bytes, got 4 at byte 26");
    append_field(&fields, WIRE_TAG_LEASES, "\6\0\0\0\1\0\1\0\0\0\7", 11);
    check_refused(WIRE_PAGE, &fields,
                  "message: expected a value of at most 0 bytes, got 1 at byte 26");
}

static void devices_have_ids_and_slots_have_devices(void **state)
{
    struct text fields = {0};

    (void)state;
    append_field(&fields, WIRE_TAG_DEVICES, "\0\0\0\0", 4);
    check_refused(WIRE_GRANTED, &fields,
                  "message: expected id, got none in the 0 bytes at byte 26");
    append_field(&fields, WIRE_TAG_SLOTS, "\0\0\0\0", 4);
    check_refused(WIRE_PAGE, &fields,
                  "message: expected device, got none in the 0 bytes at byte 26");
    append_field(&fields, WIRE_TAG_SLOTS, "\6\0\0\0\1\0\0\0\0\0", 10);
    check_refused(WIRE_PAGE, &fields, "message: expected id, got none in the 0 bytes at byte 32");
}

/* Checks that `max` parts are accepted, and that one more is refused. */
static void check_too_many(unsigned type, unsigned tag, const void *part, size_t part_length,
                           size_t max, const char *wanted)
{
    struct text row = {0};
    struct text fields = {0};
    struct wire_message message;

    for (size_t i = 0; i < max; i++) {
        append_little(&row, part_length, 4);
        text_append_bytes(&row, part, part_length);
    }
    append_field(&fields, tag, row.bytes, row.length);
    message = taken(type, &fields);
    wire_message_finish(&message);
    append_little(&row, part_length, 4);
    text_append_bytes(&row, part, part_length);
    append_field(&fields, tag, row.bytes, row.length);
    text_finish(&row);
    check_refused(type, &fields, wanted);
}

static void counts_have_limits(void **state)
{
    static const char device[] = "\1\0\x09\0\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF";
    static const char slot[] = "\1\0\x0F\0\0\0\1\0\x09\0\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF";

    (void)state;
    check_too_many(WIRE_CLAIM, WIRE_TAG_MASKS, "", 0, WIRE_MASKS_MAX,
                   "message: expected at most 16 of masks, got more at byte 90");
    check_too_many(WIRE_PAGE, WIRE_TAG_LEASES, "", 0, WIRE_PAGE_ITEMS,
                   "message: expected at most 1024 of leases, got more at byte 4122");
    check_too_many(WIRE_PAGE, WIRE_TAG_CLAIMS, "", 0, WIRE_PAGE_ITEMS,
                   "message: expected at most 1024 of claims, got more at byte 4122");
    check_too_many(WIRE_GRANTED, WIRE_TAG_DEVICES, device, 15, WIRE_GRANT_DEVICES,
                   "message: expected at most 32 of devices, got more at byte 634");
    check_too_many(WIRE_PAGE, WIRE_TAG_SLOTS, slot, 21, WIRE_PAGE_ITEMS,
                   "message: expected at most 1024 of slots, got more at byte 25626");
}

/* The packet that needs the most memory: many small items, then device files without names. */
static void memory_is_bounded(void **state)
{
    enum { NODES = 24 };
    struct text row = {0};
    struct text nodes = {0};
    struct text fields = {0};
    struct wire_message message;

    (void)state;
    for (int i = 0; i < WIRE_PAGE_ITEMS; i++)
        append_little(&row, 0, 4);
    append_field(&fields, WIRE_TAG_LEASES, row.bytes, row.length);
    append_field(&fields, WIRE_TAG_CLAIMS, row.bytes, row.length);
    text_clear(&row);
    for (int i = 0; i < NODES; i++)
        append_little(&nodes, 0, 4);
    while (fields.length + row.length + nodes.length < WIRE_MESSAGE_MAX - 100) {
        append_little(&row, 6 + 15 + 6 + nodes.length, 4);
        append_little(&row, WIRE_SLOT_DEVICE, 2);
        append_little(&row, 15 + 6 + nodes.length, 4);
        append_field(&row, DEVICE_TAG_ID, "\0\0\0\0\0\0\0\0\0", 9);
        append_field(&row, DEVICE_TAG_NODES, nodes.bytes, nodes.length);
    }
    append_field(&fields, WIRE_TAG_SLOTS, row.bytes, row.length);
    text_finish(&row);
    text_finish(&nodes);
    message = taken(WIRE_PAGE, &fields);
    assert_in_range(wire_message_memory(&message), 1024 * 1024, WIRE_MEMORY_MAX);
    wire_message_finish(&message);
}

static void no_field_comes_twice(void **state)
{
    struct text fields = {0};

    (void)state;
    append_number_field(&fields, WIRE_TAG_ID, 7, 1);
    append_number_field(&fields, WIRE_TAG_ID, 7, 1);
    check_refused(WIRE_WATCH, &fields, "message: expected id once, got it again at byte 23");
    append_field(&fields, WIRE_TAG_REQUEST, NULL, 0);
    append_field(&fields, WIRE_TAG_REQUEST, NULL, 0);
    check_refused(WIRE_CLAIM, &fields, "message: expected request once, got it again at byte 22");
    append_field(&fields, WIRE_TAG_SLOTS, NULL, 0);
    append_field(&fields, WIRE_TAG_SLOTS, NULL, 0);
    check_refused(WIRE_PAGE, &fields, "message: expected slots once, got it again at byte 22");
}

/* Checks that bytes are refused, or read as a message that can be written and read again. */
static void try_any(const char *bytes, size_t length)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct wire_message message = {.id = 4711};
    struct wire_message back;
    struct text again = {0};
    char *copy = exact_copy(bytes, length);
    int code = wire_decode(copy, length, &message, &error);

    free(copy);
    assert_int_equal(error.code, code);
    if (code < 0) {
        assert_int_equal(code, BERTH_ERROR_SYNTAX);
        assert_int_equal(strncmp(error.message, "message: expected ", 16), 0);
        assert_true(message.id == 4711);
        return;
    }
    assert_int_equal(wire_encode(&message, &again, NULL), 0);
    assert_int_equal(wire_decode(again.bytes, again.length, &back, NULL), 0);
    assert_true(wire_message_equals(&message, &back));
    wire_message_finish(&back);
    wire_message_finish(&message);
    text_finish(&again);
}

static struct text full_packet(enum wire_type type)
{
    struct wire_message message;
    struct text packet = {0};

    message_fill(&message, type);
    assert_int_equal(wire_encode(&message, &packet, NULL), 0);
    wire_message_finish(&message);
    return packet;
}

static void cut_packets_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sample_types); i++) {
        struct text packet = full_packet(sample_types[i]);

        for (size_t length = 0; length < packet.length; length++) {
            struct wire_message message = {.id = 4711};
            char *copy = exact_copy(packet.bytes, length);

            assert_int_equal(wire_decode(copy, length, &message, NULL), BERTH_ERROR_SYNTAX);
            assert_true(message.id == 4711);
            free(copy);
        }
        text_finish(&packet);
    }
}

/* Decodes packets that are cut, with a header that has the new length. */
static void repaired_packets_do_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sample_types); i++) {
        struct text packet = full_packet(sample_types[i]);

        for (size_t length = packet.length - 1; length >= WIRE_HEADER_SIZE; length--) {
            tagged_put((unsigned char *)packet.bytes + 4, length - WIRE_HEADER_SIZE, 4);
            try_any(packet.bytes, length);
        }
        text_finish(&packet);
    }
}

static void damage_packet(enum wire_type type)
{
    struct text packet = full_packet(type);

    for (size_t at = 0; at < packet.length; at++) {
        static const unsigned char changes[] = {0x01, 0x80, 0xFF, 0x10};

        for (size_t i = 0; i < COUNT(changes); i++) {
            packet.bytes[at] ^= (char)changes[i];
            try_any(packet.bytes, packet.length);
            packet.bytes[at] ^= (char)changes[i];
        }
    }
    text_finish(&packet);
}

static void damaged_packets_do_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sample_types); i++)
        damage_packet(sample_types[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(long_packets_are_refused),
        cmocka_unit_test(later_versions_are_understood_as_far_as_known),
        cmocka_unit_test(unknown_types_have_no_fields),
        cmocka_unit_test(fields_of_other_types_are_skipped),
        cmocka_unit_test(packets_with_every_field_give_those_of_their_type),
        cmocka_unit_test(values_to_act_by_are_checked),
        cmocka_unit_test(lengths_within_may_lie),
        cmocka_unit_test(devices_have_ids_and_slots_have_devices),
        cmocka_unit_test(counts_have_limits),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(no_field_comes_twice),
        cmocka_unit_test(cut_packets_are_refused),
        cmocka_unit_test(repaired_packets_do_no_harm),
        cmocka_unit_test(damaged_packets_do_no_harm),
    };

    return cmocka_run_group_tests_name("wire_hostile", tests, NULL, NULL);
}
