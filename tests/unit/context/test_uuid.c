/* SPDX-License-Identifier: Apache-2.0 */
#include "context/uuid.h"

#include "base/count.h"
#include "support/unit.h"

#define DIGITS "00112233-4455-6677-8899-aabbccddeeff"

static void text_becomes_bytes(void **state)
{
    struct uuid uuid = uuid_parse("GPU-" DIGITS, false);

    (void)state;
    assert_true(uuid.known);
    for (size_t i = 0; i < UUID_SIZE; i++)
        assert_int_equal(uuid.bytes[i], 0x11 * i);
    assert_true(uuid_parse("MIG-" DIGITS, true).known);
}

static void either_case_is_the_same(void **state)
{
    struct uuid lower = uuid_parse("GPU-" DIGITS, false);
    struct uuid upper = uuid_parse("GPU-00112233-4455-6677-8899-AABBCCDDEEFF", false);
    struct uuid other = uuid_parse("GPU-00112233-4455-6677-8899-aabbccddeefe", false);

    (void)state;
    assert_true(upper.known);
    assert_true(uuid_equals(&lower, &upper));
    assert_false(uuid_equals(&lower, &other));
}

static void anything_else_is_unknown(void **state)
{
    static const char *const texts[] = {
        "",
        "GPU-",
        DIGITS,
        "MIG-" DIGITS,
        "gpu-" DIGITS,
        "GPU-" DIGITS "0",
        "GPU-00112233-4455-6677-8899-aabbccddeef",
        "GPU-001122334455-6677-8899-aabbccddeeff",
        "GPU-0011223g-4455-6677-8899-aabbccddeeff",
        "GPU-\x10\x10"
        "112233-4455-6677-8899-aabbccddeeff",
        "GPU-f00dbabe12345678",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_false(uuid_parse(texts[i], false).known);
    assert_false(uuid_parse(NULL, false).known);
    assert_false(uuid_parse("GPU-" DIGITS, true).known);
}

static void zeros_are_none(void **state)
{
    uint8_t bytes[UUID_SIZE] = {0};

    (void)state;
    assert_false(uuid_of(bytes).known);
    bytes[UUID_SIZE - 1] = 1;
    assert_true(uuid_of(bytes).known);
    assert_int_equal(uuid_of(bytes).bytes[UUID_SIZE - 1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_becomes_bytes),
        cmocka_unit_test(either_case_is_the_same),
        cmocka_unit_test(anything_else_is_unknown),
        cmocka_unit_test(zeros_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
