/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/crc32c.h"

#include <string.h>

#include "support/random.h"
#include "support/steps.h"

/* Computes the sum by its definition, one bit at a time. */
static uint32_t slow_sum(const unsigned char *bytes, size_t length)
{
    uint32_t sum = UINT32_MAX;

    for (size_t i = 0; i < length; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = (sum & 1) != 0 ? sum >> 1 ^ 0x82F63B78 : sum >> 1;
    }
    return ~sum;
}

/* From RFC 3720, B.4, and the usual check value for "123456789". */
static void published_sums_come_out(void **state)
{
    unsigned char block[32] = {0};

    (void)state;
    assert_int_equal(crc32c(0, NULL, 0), 0);
    assert_int_equal(crc32c(0, "123456789", 9), 0xE3069283);
    assert_int_equal(crc32c(0, block, sizeof(block)), 0x8A9136AA);
    memset(block, 0xFF, sizeof(block));
    assert_int_equal(crc32c(0, block, sizeof(block)), 0x62A8AB43);
    for (unsigned i = 0; i < sizeof(block); i++)
        block[i] = (unsigned char)i;
    assert_int_equal(crc32c(0, block, sizeof(block)), 0x46DD794E);
}

static void every_byte_has_its_remainder(void **state)
{
    (void)state;
    for (unsigned value = 0; value < 256; value++) {
        unsigned char byte = (unsigned char)value;

        assert_int_equal(crc32c(0, &byte, 1), slow_sum(&byte, 1));
        assert_int_equal(crc32c_by_table(0, &byte, 1), slow_sum(&byte, 1));
    }
}

static void pieces_sum_up_to_the_whole(void **state)
{
    struct test_random random = {1};

    (void)state;
    for (unsigned long step = test_steps(2000); step > 0; step--) {
        unsigned char bytes[64];
        size_t length = test_random_below(&random, sizeof(bytes) + 1);
        size_t first = test_random_below(&random, length + 1);

        for (size_t i = 0; i < length; i++)
            bytes[i] = (unsigned char)test_random_next(&random);
        assert_int_equal(crc32c(crc32c(0, bytes, first), bytes + first, length - first),
                         slow_sum(bytes, length));
        assert_int_equal(crc32c_by_table(0, bytes, length), slow_sum(bytes, length));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_sums_come_out),
        cmocka_unit_test(every_byte_has_its_remainder),
        cmocka_unit_test(pieces_sum_up_to_the_whole),
    };

    return cmocka_run_group_tests_name("crc32c", tests, NULL, NULL);
}
