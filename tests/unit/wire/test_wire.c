/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "wire/wire.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/system/file.h"
#include "base/text/choice.h"
#include "codec/tagged.h"
#include "support/aborts.h"
#include "support/assert_error.h"
#include "support/assert_hex.h"
#include "support/exact_copy.h"
#include "support/failing_allocator.h"
#include "support/source_root.h"
#include "support/steps.h"
#include "support/wire/sample_messages.h"
#include "support/wire/wire_messages.h"

static struct text encoded(const struct wire_message *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text bytes = {0};
    int code = wire_encode(message, &bytes, &error);

    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    return bytes;
}

/* Decodes a packet, which must be valid; the caller finishes the message. */
static struct wire_message decoded(const struct text *bytes)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct wire_message message = {0};
    char *copy = exact_copy(bytes->bytes, bytes->length);
    int code = wire_decode(copy, bytes->length, &message, &error);

    free(copy);
    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    return message;
}

static void check_round_trip(const struct wire_message *message)
{
    struct text bytes = encoded(message);
    struct wire_message back = decoded(&bytes);
    struct text again = encoded(&back);

    assert_true(wire_message_equals(message, &back));
    assert_int_equal(bytes.length, again.length);
    assert_memory_equal(bytes.bytes, again.bytes, again.length);
    assert_in_range(wire_message_memory(&back), 0, WIRE_MEMORY_MAX);
    wire_message_finish(&back);
    text_finish(&again);
    text_finish(&bytes);
}

static void every_type_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sample_types); i++) {
        struct wire_message message = {.type = sample_types[i]};

        check_round_trip(&message);
        message_fill(&message, sample_types[i]);
        check_round_trip(&message);
        wire_message_finish(&message);
        assert_true(wire_message_equals(&message, &(struct wire_message){0}));
        wire_message_finish(&message);
    }
}

static void random_messages_come_back(void **state)
{
    struct test_random random = {23};

    (void)state;
    for (unsigned long step = test_steps(3000); step > 0; step--) {
        struct wire_message message;

        message_randomise(&message, &random);
        check_round_trip(&message);
        wire_message_finish(&message);
    }
}

static void check_bytes(const struct wire_message *message, const char *wanted)
{
    struct text bytes = encoded(message);

    assert_hex(&bytes, wanted);
    text_finish(&bytes);
}

/* Other programs send these bytes: if this test fails, the code is wrong. */
static void bytes_stay_as_they_are(void **state)
{
    struct request plain;
    struct wire_message claim = {
        .type = WIRE_CLAIM,
        .number = 258,
        .token = {1, 2},
        .request = &plain,
        .hold = LEASE_HOLD_PROCESS,
    };

    (void)state;
    request_init(&plain);
    check_bytes(&(struct wire_message){.type = WIRE_HELLO}, "01010000000000000000000000000000");
    check_bytes(&claim, "010200001b0000000201000000000000"
                        "03000100000001"
                        "04000100000002"
                        "050000000000"
                        "06000100000001");
    check_bytes(
        &(struct wire_message){
            .type = WIRE_RELEASE, .number = 1, .id = 300, .exit_code = optional_number_of(0)},
        "010300000e0000000100000000000000"
        "0100020000002c01"
        "1e0000000000");
    check_bytes(
        &(struct wire_message){
            .type = WIRE_NOTICE, .id = 1, .end = LEASE_END_EXPIRED, .force_at = 256},
        "01460000160000000000000000000000"
        "01000100000001"
        "1c00020000000001"
        "1d000100000003");
}

/* Decodes a packet, and checks that encoding the message gives the same bytes. */
static struct wire_message check_others(const struct text *packet)
{
    struct wire_message message = decoded(packet);
    struct text again = encoded(&message);

    assert_int_equal(again.length, packet->length);
    assert_memory_equal(again.bytes, packet->bytes, packet->length);
    text_finish(&again);
    return message;
}

static void read_source(const char *name, struct text *ret_text)
{
    char *path = source_path(name);

    assert_int_equal(file_read(path, WIRE_MESSAGE_MAX, ret_text, NULL), 0);
    free(path);
}

/* The packets in tests/fuzz/corpus/wire were made by tests/support/clients/wire_format.py. */
static void another_client_writes_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sample_types); i++) {
        struct text name = {0};
        struct text packet = {0};
        struct wire_message message;

        text_append_format(&name, "tests/fuzz/corpus/wire/%s", wire_type_name(sample_types[i]));
        read_source(text_string(&name), &packet);
        message = check_others(&packet);
        assert_int_equal(message.type, sample_types[i]);
        wire_message_finish(&message);
        text_finish(&packet);
        text_finish(&name);
    }
}

/* Returns the bytes of a block of hexadecimal numbers, in which # begins a comment. */
static struct text bytes_of_block(const char *block, size_t length)
{
    struct text bytes = {0};
    bool comment = false;

    for (size_t i = 0; i < length; i++) {
        comment = block[i] == '#' || (comment && block[i] != '\n');
        if (comment || block[i] == ' ' || block[i] == '\n')
            continue;
        text_append_char(&bytes, (char)strtoul((char[]){block[i], block[i + 1], '\0'}, NULL, 16));
        i++;
    }
    return bytes;
}

/* The examples of docs/PROTOCOL.md. */
static void the_document_writes_the_same(void **state)
{
    static const enum wire_type types[] = {WIRE_CLAIM, WIRE_GRANTED};
    static const char begin[] = "```hex\n";
    struct text document = {0};
    const char *at;
    size_t found = 0;

    (void)state;
    read_source("docs/PROTOCOL.md", &document);
    at = text_string(&document);
    for (at = strstr(at, begin); at != NULL; at = strstr(at, begin)) {
        struct text packet;
        struct wire_message message;

        at += strlen(begin);
        packet = bytes_of_block(at, (size_t)(strstr(at, "```") - at));
        message = check_others(&packet);
        assert_in_range(found, 0, COUNT(types) - 1);
        assert_int_equal(message.type, types[found++]);
        assert_int_equal(message.number, 42);
        wire_message_finish(&message);
        text_finish(&packet);
    }
    assert_int_equal(found, COUNT(types));
    text_finish(&document);
}

static void types_have_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sample_types); i++)
        assert_non_null(wire_type_name(sample_types[i]));
    assert_string_equal(wire_type_name(WIRE_CLAIM), "claim");
    assert_string_equal(wire_type_name(WIRE_CLOSING), "closing");
    assert_null(wire_type_name((enum wire_type)0));
    assert_null(wire_type_name((enum wire_type)(WIRE_FOLLOW + 1)));
    assert_null(wire_type_name((enum wire_type)(WIRE_NEWS + 1)));
}

/* Values of a later daemon are kept. */
static void numbers_of_later_versions_are_kept(void **state)
{
    struct wire_message message;
    struct wire_message back;
    struct text bytes;

    (void)state;
    message_fill(&message, WIRE_PAGE);
    message.section = 99;
    message.snapshot.slots.items[0].state = (enum slot_state)(SLOT_STATE_GONE + 1);
    message.snapshot.slots.items[0].sharing = (enum sharing)UINT32_MAX;
    message.snapshot.slots.items[0].device->health = (enum health)77;
    message.snapshot.leases.items[0].sharing = (enum sharing)(SHARING_TIME_SLICE + 1);
    message.snapshot.leases.items[0].priority = (enum priority)(PRIORITY_HIGH + 1);
    message.snapshot.leases.items[0].end = (enum lease_end)(LEASE_END_IDLE + 1);
    message.snapshot.claims.items[0].priority = (enum priority)UINT32_MAX;
    bytes = encoded(&message);
    back = decoded(&bytes);
    assert_true(wire_message_equals(&message, &back));
    assert_string_equal(pool_info_describe_end(back.snapshot.leases.items[0].end), "it ended");
    wire_message_finish(&back);
    wire_message_finish(&message);
    text_finish(&bytes);
    message = (struct wire_message){.type = WIRE_ENDED, .end = (enum lease_end)UINT32_MAX};
    check_round_trip(&message);
    assert_string_equal(pool_info_describe_end(message.end), "it ended");
}

static void what_is_known_has_words(void **state)
{
    (void)state;
    for (int i = SLOT_STATE_FREE; i <= SLOT_STATE_GONE; i++)
        assert_non_null(choice_name(slot_state_names, i));
    for (int i = LEASE_END_RELEASED; i <= LEASE_END_IDLE; i++)
        assert_string_not_equal(pool_info_describe_end((enum lease_end)i), "it ended");
}

static void check_not_encoded(const struct wire_message *message, int wanted_code,
                              const char *wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text bytes = {0};

    text_append(&bytes, "before");
    assert_fails(wire_encode(message, &bytes, &error), wanted_code, &error, wanted);
    assert_string_equal(text_string(&bytes), "before");
    assert_false(text_failed(&bytes));
    assert_int_equal(wire_encode(message, &bytes, NULL), wanted_code);
    text_finish(&bytes);
}

static void what_could_not_be_read_is_not_written(void **state)
{
    static const char beyond[] = "message: expected values within their limits, got one above";
    static char text[WIRE_TEXT_MAX + 2];
    struct slot_info slot = {0};
    struct wire_message message = {.type = WIRE_CLAIM, .about.inventory = text};

    (void)state;
    check_not_encoded(&(struct wire_message){0}, BERTH_ERROR_INVALID,
                      "message: expected a type from 1 to 255, got 0");
    check_not_encoded(&(struct wire_message){.type = (enum wire_type)256}, BERTH_ERROR_INVALID,
                      "message: expected a type from 1 to 255, got 256");
    memset(text, 'a', sizeof(text) - 1);
    check_not_encoded(&message, BERTH_ERROR_INVALID, beyond);
    text[WIRE_TEXT_MAX] = '\0';
    check_round_trip(&message);
    check_not_encoded(&(struct wire_message){.type = WIRE_CLAIM, .hold = LEASE_HOLD_NOTHING + 1},
                      BERTH_ERROR_INVALID, beyond);
    check_not_encoded(&(struct wire_message){.type = WIRE_POOL, .pid = -1}, BERTH_ERROR_INVALID,
                      beyond);
    check_not_encoded(
        &(struct wire_message){.type = WIRE_ENDED, .exit_code = optional_number_of(256)},
        BERTH_ERROR_INVALID, beyond);
    check_not_encoded(
        &(struct wire_message){.type = WIRE_PAGE, .snapshot.slots = {.items = &slot, .count = 1}},
        BERTH_ERROR_INVALID, beyond);
}

static void encode_field_of_another_type(void)
{
    struct text bytes = {0};

    wire_encode(&(struct wire_message){.type = WIRE_STOP, .id = 1, .stay = true}, &bytes, NULL);
}

static void only_fields_of_the_type_are_encoded(void **state)
{
    (void)state;
    assert_aborts(encode_field_of_another_type);
}

/* Encodes and decodes a message with a text that is cut to `wanted`. */
static void check_cut(const struct wire_message *message, const char *wanted)
{
    struct text bytes = encoded(message);
    struct wire_message back = decoded(&bytes);

    assert_true(same_text(back.command, message->command == NULL ? NULL : wanted));
    assert_true(same_text(back.text, message->text == NULL ? NULL : wanted));
    assert_true(
        same_text(back.about.version_text, message->about.version_text == NULL ? NULL : wanted));
    wire_message_finish(&back);
    text_finish(&bytes);
}

/* Long texts, such as a claim for very many devices, must not prevent showing the queue. */
static void long_lines_for_people_are_cut(void **state)
{
    static char text[WIRE_TEXT_MAX + 2];
    struct claim_info claim = {.name = text, .command = text, .request = text, .why = text};
    struct lease_info lease = {.name = text, .command = text};
    struct wire_message message = {
        .type = WIRE_PAGE,
        .snapshot.leases = {.items = &lease, .count = 1},
        .snapshot.claims = {.items = &claim, .count = 1},
    };
    struct wire_message back;
    const char *cut;
    struct text bytes;

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    memcpy(text + WIRE_TEXT_MAX - 4, "\xC3\xA4", 2); /* only one of its bytes has room */
    bytes = encoded(&message);
    back = decoded(&bytes);
    cut = back.snapshot.leases.items[0].name;
    assert_int_equal(strlen(cut), WIRE_TEXT_MAX - 1);
    assert_string_equal(cut + WIRE_TEXT_MAX - 6, "aa...");
    assert_string_equal(back.snapshot.leases.items[0].command, cut);
    assert_string_equal(back.snapshot.claims.items[0].name, cut);
    assert_string_equal(back.snapshot.claims.items[0].command, cut);
    assert_string_equal(back.snapshot.claims.items[0].request, cut);
    assert_string_equal(back.snapshot.claims.items[0].why, cut);
    check_cut(&(struct wire_message){.type = WIRE_CLAIM, .command = text}, cut);
    check_cut(&(struct wire_message){.type = WIRE_REFUSED, .text = text}, cut);
    check_cut(&(struct wire_message){.type = WIRE_POOL, .about.version_text = text}, cut);
    wire_message_finish(&back);
    text_finish(&bytes);
    text[WIRE_TEXT_MAX] = '\0';
    check_round_trip(&message);
}

/* Encodes the longest mask that fits, and one byte more. */
static void messages_have_a_longest(void **state)
{
    enum { ROOM = WIRE_MESSAGE_MAX - WIRE_HEADER_SIZE - TAGGED_FIELD_SIZE - 4 };
    char *mask = malloc(ROOM + 2);
    struct wire_message message = {.type = WIRE_CLAIM, .masks = {.items = &mask, .count = 1}};

    (void)state;
    assert_non_null(mask);
    memset(mask, 'a', ROOM + 1);
    mask[ROOM + 1] = '\0';
    check_not_encoded(&message, BERTH_ERROR_LIMIT,
                      "message: expected at most 131072 bytes, got 131073");
    mask[ROOM] = '\0';
    check_round_trip(&message);
    free(mask);
}

static void pages_and_grants_may_be_full(void **state)
{
    struct wire_message message = {.type = WIRE_PAGE};
    struct text bytes = {0};

    (void)state;
    for (uint32_t i = 0; i < WIRE_PAGE_ITEMS; i++) {
        message_add_slot(&message)->device->id = (struct device_id){.index = i};
        assert_non_null(vector_append(&message.snapshot.leases));
        assert_non_null(vector_append(&message.snapshot.claims));
    }
    check_round_trip(&message);
    assert_non_null(vector_append(&message.snapshot.claims));
    assert_int_equal(wire_encode(&message, &bytes, NULL), BERTH_ERROR_INVALID);
    wire_message_finish(&message);
    message.type = WIRE_GRANTED;
    for (uint32_t i = 0; i < WIRE_GRANT_DEVICES; i++)
        ((struct device *)vector_append(&message.devices))->id = (struct device_id){.index = i};
    check_round_trip(&message);
    assert_non_null(vector_append(&message.devices));
    assert_int_equal(wire_encode(&message, &bytes, NULL), BERTH_ERROR_INVALID);
    wire_message_finish(&message);
    assert_int_equal(bytes.length, 0);
    text_finish(&bytes);
}

static int encode_full(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text bytes = {0};
    int code = wire_encode(context, &bytes, &error);

    assert_int_equal(error.code, code);
    assert_false(text_failed(&bytes));
    assert_true(code == 0 || bytes.length == 0);
    text_finish(&bytes);
    return code;
}

static int decode_full(void *context)
{
    const struct text *bytes = context;
    struct berth_error error = BERTH_ERROR_INIT;
    struct wire_message message = {.id = 4711};
    int code = wire_decode(bytes->bytes, bytes->length, &message, &error);

    assert_int_equal(error.code, code);
    if (code == 0)
        wire_message_finish(&message);
    else
        assert_true(message.id == 4711);
    return code;
}

static void no_memory_leaves_nothing(void **state)
{
    struct text failed = {.failed = true};
    size_t allocations = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(sample_types); i++) {
        struct wire_message message;
        struct text bytes;

        message_fill(&message, sample_types[i]);
        bytes = encoded(&message);
        assert_in_range(failing_allocator_try_all(encode_full, &message), 1, 20);
        allocations += failing_allocator_try_all(decode_full, &bytes);
        assert_int_equal(wire_encode(&message, &failed, NULL), BERTH_ERROR_MEMORY);
        assert_true(text_failed(&failed));
        wire_message_finish(&message);
        text_finish(&bytes);
    }
    assert_in_range(allocations, 80, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back),
        cmocka_unit_test(random_messages_come_back),
        cmocka_unit_test(bytes_stay_as_they_are),
        cmocka_unit_test(another_client_writes_the_same),
        cmocka_unit_test(the_document_writes_the_same),
        cmocka_unit_test(types_have_names),
        cmocka_unit_test(numbers_of_later_versions_are_kept),
        cmocka_unit_test(what_is_known_has_words),
        cmocka_unit_test(what_could_not_be_read_is_not_written),
        cmocka_unit_test(only_fields_of_the_type_are_encoded),
        cmocka_unit_test(long_lines_for_people_are_cut),
        cmocka_unit_test(messages_have_a_longest),
        cmocka_unit_test(pages_and_grants_may_be_full),
        cmocka_unit_test(no_memory_leaves_nothing),
    };

    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
