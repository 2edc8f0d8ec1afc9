/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/machine/pci.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/random.h"
#include "support/steps.h"

static const struct pci_address untouched = {false, 4711, 1, 2, 3};

static void check_equal(struct pci_address found, struct pci_address wanted)
{
    assert_int_equal(found.known, wanted.known);
    assert_int_equal(found.domain, wanted.domain);
    assert_int_equal(found.bus, wanted.bus);
    assert_int_equal(found.device, wanted.device);
    assert_int_equal(found.function, wanted.function);
}

static void addresses_are_written_as_the_kernel_does(void **state)
{
    (void)state;
    assert_string_equal(pci_format((struct pci_address){true, 0, 7, 0, 0}).text, "0000:07:00.0");
    assert_string_equal(pci_format((struct pci_address){true, 1, 0xaf, 0x1f, 7}).text,
                        "0001:af:1f.7");
    assert_string_equal(pci_format((struct pci_address){true, 0x10000, 0, 0, 0}).text,
                        "10000:00:00.0");
    assert_string_equal(pci_format((struct pci_address){true, UINT32_MAX, 0xff, 0x1f, 7}).text,
                        "ffffffff:ff:1f.7");
}

static void addresses_are_read(void **state)
{
    static const struct {
        const char *text;
        struct pci_address address;
    } cases[] = {
        {"0000:07:00.0", {true, 0, 7, 0, 0}},
        {"07:00.0", {true, 0, 7, 0, 0}},
        {"7:0.0", {true, 0, 7, 0, 0}},
        {"0:7:0.0", {true, 0, 7, 0, 0}},
        {"ff:1f.7", {true, 0, 0xff, 0x1f, 7}},
        {"FF:1F.7", {true, 0, 0xff, 0x1f, 7}},
        {"aBcD:eF:0a.1", {true, 0xabcd, 0xef, 0x0a, 1}},
        {"00000000:07:00.0", {true, 0, 7, 0, 0}},
        {"10000:01:00.0", {true, 0x10000, 1, 0, 0}},
        {"ffffffff:00:00.0", {true, UINT32_MAX, 0, 0, 0}},
        {"0000:00:00.0", {true, 0, 0, 0, 0}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct pci_address address = untouched;

        assert_int_equal(pci_parse(cases[i].text, &address, &error), 0);
        check_equal(address, cases[i].address);
        assert_string_equal(error.message, "");
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        ":",
        "::",
        ":.",
        "07",
        "07:00",
        "07:00.",
        "07:.0",
        ":00.0",
        "0000:07:00",
        "0000:07:00.",
        "0000::00.0",
        ":07:00.0",
        "07:00.8",
        "07:00.00",
        "07:20.0",
        "07:000.0",
        "100:00.0",
        "007:00.0",
        "000000000:07:00.0",
        "100000000:07:00.0",
        "g:07:00.0",
        "0x0:07:00.0",
        "07:00.g",
        "0000:07:00.0 ",
        " 0000:07:00.0",
        "0000:07:00.0.0",
        "0:0:0:0.0",
        "0000-07-00.0",
        "0000:07.00.0",
        "0000:07:00:0",
        "+000:07:00.0",
        "-1:07:00.0",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct pci_address address = untouched;
        char message[128];

        snprintf(message, sizeof(message), "expected a PCI address such as 0000:07:00.0, got '%s'",
                 texts[i]);
        assert_fails(pci_parse(texts[i], &address, &error), BERTH_ERROR_SYNTAX, &error, message);
        assert_int_equal(pci_parse(texts[i], &address, NULL), BERTH_ERROR_SYNTAX);
        check_equal(address, untouched);
    }
}

static struct pci_address random_address(struct test_random *random)
{
    return (struct pci_address){
        .known = true,
        .domain = (uint32_t)test_random_any_length(random),
        .bus = (uint8_t)test_random_any_length(random),
        .device = (uint8_t)test_random_below(random, 32),
        .function = (uint8_t)test_random_below(random, 8),
    };
}

static void random_addresses_come_back(void **state)
{
    struct test_random random = {3};

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        struct pci_address address = random_address(&random);
        struct pci_address again = untouched;

        assert_int_equal(pci_parse(pci_format(address).text, &again, NULL), 0);
        check_equal(again, address);
    }
}

static void a_part_decides_before_those_behind_it(void **state)
{
    static const struct pci_address rising[] = {
        {true, 0, 0, 0, 0}, {true, 0, 0, 0, 1},       {true, 0, 0, 0, 7},
        {true, 0, 0, 1, 0}, {true, 0, 0, 0x1f, 7},    {true, 0, 1, 0, 0},
        {true, 0, 9, 0, 0}, {true, 0, 0x10, 0, 0},    {true, 0, 0xff, 9, 1},
        {true, 1, 0, 0, 0}, {true, 0x10000, 0, 0, 0}, {true, UINT32_MAX, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rising); i++) {
        for (size_t j = 0; j < COUNT(rising); j++) {
            int order = pci_compare(rising[i], rising[j]);

            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

/* Addresses have digits of fixed width, so they sort like strings. */
static void random_addresses_are_ordered_as_text(void **state)
{
    struct test_random random = {4};

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        struct pci_address one = random_address(&random);
        struct pci_address other = random_address(&random);
        char texts[2][24];
        int wanted;
        int found;

        if (test_random_below(&random, 2) == 0)
            other.domain = one.domain;
        if (test_random_below(&random, 2) == 0)
            other.bus = one.bus;
        if (test_random_below(&random, 2) == 0)
            other.device = one.device;
        snprintf(texts[0], sizeof(texts[0]), "%08" PRIx32 ":%02x:%02x.%x", one.domain, one.bus,
                 one.device, one.function);
        snprintf(texts[1], sizeof(texts[1]), "%08" PRIx32 ":%02x:%02x.%x", other.domain, other.bus,
                 other.device, other.function);
        wanted = strcmp(texts[0], texts[1]);
        found = pci_compare(one, other);
        assert_int_equal((found > 0) - (found < 0), (wanted > 0) - (wanted < 0));
        assert_int_equal(pci_compare(other, one), -found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_written_as_the_kernel_does),
        cmocka_unit_test(addresses_are_read),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(random_addresses_come_back),
        cmocka_unit_test(a_part_decides_before_those_behind_it),
        cmocka_unit_test(random_addresses_are_ordered_as_text),
    };

    return cmocka_run_group_tests_name("pci", tests, NULL, NULL);
}
