/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/journal/journal_repair.h"

#include <stdint.h>
#include <string.h>

#include "engine/journal/journal.h"
#include "support/random.h"

enum { ROUNDS = 2000, SLOTS = 300 };

/* Appends a record with this number of slots. */
static void write_record(struct text *out, size_t slots)
{
    uint32_t items[SLOTS];
    const struct engine_event event = {
        .type = EVENT_GRANTED, .time = 1000, .lease = 7, .slots = items, .slot_count = slots};

    for (size_t i = 0; i < slots; i++)
        items[i] = (uint32_t)(i * 2654435761U);
    assert_int_equal(journal_encode(&event, out), 0);
}

/* Damages the bytes, and checks that the record is put right, with other bytes behind it. */
static void check_repair(const struct text *whole, size_t size, size_t at, unsigned difference)
{
    struct text repaired = {0};

    whole->bytes[at] = (char)((unsigned char)whole->bytes[at] ^ difference);
    assert_true(journal_repair(whole->bytes, whole->length, &repaired));
    whole->bytes[at] = (char)((unsigned char)whole->bytes[at] ^ difference);
    assert_int_equal(repaired.length, size);
    assert_memory_equal(repaired.bytes, whole->bytes, size);
    text_finish(&repaired);
}

static void any_wrong_byte_is_put_right(void **state)
{
    struct text bytes = {0};
    size_t size;

    (void)state;
    write_record(&bytes, 3);
    size = bytes.length;
    text_append(&bytes, "other bytes");
    for (size_t at = 0; at < size; at++) {
        for (unsigned difference = 1; difference <= UINT8_MAX; difference++)
            check_repair(&bytes, size, at, difference);
    }
    text_finish(&bytes);
}

static void long_record_is_put_right(void **state)
{
    struct text bytes = {0};

    (void)state;
    write_record(&bytes, SLOTS);
    assert_true(bytes.length > 1000);
    for (size_t at = 0; at < bytes.length; at++)
        check_repair(&bytes, bytes.length, at, 1 + at % UINT8_MAX);
    text_finish(&bytes);
}

/* A wrong repair has a chance of about one in a hundred million per byte. */
static void more_damage_is_left_alone(void **state)
{
    struct text bytes = {0};
    struct test_random random = {1};

    (void)state;
    write_record(&bytes, 3);
    for (int round = 0; round < ROUNDS; round++) {
        struct text damaged = {0};
        struct text repaired = {0};
        size_t first = test_random_below(&random, bytes.length);
        size_t second = (first + 1 + test_random_below(&random, bytes.length - 1)) % bytes.length;

        text_append_bytes(&damaged, bytes.bytes, bytes.length);
        damaged.bytes[first] ^= (char)(1 + (int)test_random_below(&random, UINT8_MAX));
        damaged.bytes[second] ^= (char)(1 + (int)test_random_below(&random, UINT8_MAX));
        assert_false(journal_repair(damaged.bytes, damaged.length, &repaired));
        assert_int_equal(repaired.length, 0);
        text_finish(&damaged);
        text_finish(&repaired);
    }
    text_finish(&bytes);
}

static void right_or_short_record_needs_no_repair(void **state)
{
    struct text bytes = {0};
    struct text repaired = {0};

    (void)state;
    write_record(&bytes, 3);
    assert_false(journal_repair(bytes.bytes, bytes.length, &repaired));
    for (size_t length = 0; length < bytes.length; length++)
        assert_false(journal_repair(bytes.bytes, length, &repaired));
    text_finish(&bytes);
    text_finish(&repaired);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_wrong_byte_is_put_right),
        cmocka_unit_test(long_record_is_put_right),
        cmocka_unit_test(more_damage_is_left_alone),
        cmocka_unit_test(right_or_short_record_needs_no_repair),
    };

    return cmocka_run_group_tests_name("journal_repair", tests, NULL, NULL);
}
