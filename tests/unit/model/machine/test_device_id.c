/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/machine/device_id.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"

#define WANTED "expected a device id such as nvidia0, amd3 or nvidia0.1, got "

static const struct device_id untouched = {VENDOR_DRI, 4711, 4712};

static const struct {
    const char *text;
    struct device_id id;
} known[] = {
    {"nvidia0", {VENDOR_NVIDIA, 0, DEVICE_NO_MIG}},
    {"nvidia10", {VENDOR_NVIDIA, 10, DEVICE_NO_MIG}},
    {"nvidia0.0", {VENDOR_NVIDIA, 0, 0}},
    {"nvidia0.3", {VENDOR_NVIDIA, 0, 3}},
    {"nvidia12.10", {VENDOR_NVIDIA, 12, 10}},
    {"amd3", {VENDOR_AMD, 3, DEVICE_NO_MIG}},
    {"intel0", {VENDOR_INTEL, 0, DEVICE_NO_MIG}},
    {"apple0", {VENDOR_APPLE, 0, DEVICE_NO_MIG}},
    {"dri2", {VENDOR_DRI, 2, DEVICE_NO_MIG}},
    {"amd999999", {VENDOR_AMD, DEVICE_INDEX_MAX, DEVICE_NO_MIG}},
    {"nvidia999999.999999", {VENDOR_NVIDIA, DEVICE_INDEX_MAX, DEVICE_INDEX_MAX}},
};

static void ids_are_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        assert_string_equal(device_id_format(known[i].id).text, known[i].text);
    for (size_t i = 0; i < COUNT(known); i++) {
        struct text text = {0};

        device_id_append(known[i].id, &text);
        assert_string_equal(text_string(&text), known[i].text);
        text_finish(&text);
    }
}

static void ids_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct device_id id = untouched;

        assert_int_equal(device_id_parse(known[i].text, &id, &error), 0);
        assert_int_equal(id.vendor, known[i].id.vendor);
        assert_int_equal(id.index, known[i].id.index);
        assert_int_equal(id.mig, known[i].id.mig);
        assert_string_equal(error.message, "");
    }
}

static void two_fit_into_one_expression(void **state)
{
    char both[80];

    (void)state;
    snprintf(both, sizeof(both), "%s %s", device_id_format(known[0].id).text,
             device_id_format(known[5].id).text);
    assert_string_equal(both, "nvidia0 amd3");
}

/* One spelling per device: no blanks, capitals, signs or leading zeros. */
static void other_texts_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "nvidia",
        "nvidia-1",
        "nvidia+1",
        "nvidia00",
        "nvidia01",
        "nvidia0.",
        "nvidia0.x",
        "nvidia0.00",
        "nvidia0.01",
        "nvidia.0",
        "nvidia0.1.2",
        "nvidia0,",
        "nvidia 0",
        " nvidia0",
        "nvidia0 ",
        "Nvidia0",
        "NVIDIA0",
        "amd0.1",
        "dri0.0",
        "any0",
        "0",
        "gpu0",
        "nvidia0x1",
        "amd1000000",
        "nvidia0x",
        "nvidia1000000",
        "nvidia0.1000000",
        "amdamd0",
        "amd4294967296",
        "intel0.",
        "dri",
        "apple1e3",
        "nvidia18446744073709551616",
        "nvidia0.4294967295",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct device_id id = untouched;
        char message[128];

        snprintf(message, sizeof(message), WANTED "'%s'", texts[i]);
        assert_fails(device_id_parse(texts[i], &id, &error), BERTH_ERROR_SYNTAX, &error, message);
        assert_int_equal(device_id_parse(texts[i], &id, NULL), BERTH_ERROR_SYNTAX);
        assert_true(device_id_equals(id, untouched));
    }
}

static void what_was_found_is_made_harmless(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct device_id id;

    (void)state;
    assert_fails(device_id_parse("nvidia0\n\033[2J", &id, &error), BERTH_ERROR_SYNTAX, &error,
                 WANTED "'nvidia0??[2J'");
}

static struct device_id random_id(struct test_random *random)
{
    struct device_id id = {.vendor = (enum vendor)test_random_below(random, VENDOR_DRI + 1),
                           .index = (uint32_t)(test_random_any_length(random) % 1000000),
                           .mig = DEVICE_NO_MIG};

    if (id.vendor == VENDOR_NVIDIA && test_random_below(random, 2) == 0)
        id.mig = (uint32_t)(test_random_any_length(random) % 1000000);
    return id;
}

static void random_ids_come_back(void **state)
{
    struct test_random random = {1};

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        struct device_id id = random_id(&random);
        struct device_id again = untouched;

        assert_int_equal(device_id_parse(device_id_format(id).text, &again, NULL), 0);
        assert_true(device_id_equals(id, again));
    }
}

/* Changes a byte of a valid id: a result that still parses must be formatted the same way. */
static void random_texts_have_one_spelling(void **state)
{
    static const char bytes[] = "0123456789.-, aditnvp";
    struct test_random random = {2};

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        struct device_id_text text = device_id_format(random_id(&random));
        struct device_id id;

        text.text[test_random_below(&random, strlen(text.text))] =
            bytes[test_random_below(&random, sizeof(bytes) - 1)];
        if (device_id_parse(text.text, &id, NULL) == 0)
            assert_string_equal(device_id_format(id).text, text.text);
    }
}

static void ids_are_equal_in_every_part(void **state)
{
    const struct device_id id = {VENDOR_NVIDIA, 1, 2};

    (void)state;
    assert_true(device_id_equals(id, id));
    assert_false(device_id_equals(id, (struct device_id){VENDOR_AMD, 1, 2}));
    assert_false(device_id_equals(id, (struct device_id){VENDOR_NVIDIA, 0, 2}));
    assert_false(device_id_equals(id, (struct device_id){VENDOR_NVIDIA, 1, 3}));
    assert_false(device_id_equals(id, (struct device_id){VENDOR_NVIDIA, 1, DEVICE_NO_MIG}));
}

/* Checks that the list has exactly these ids, in this order. */
static void check_list(const struct device_id_list *list, const char *wanted)
{
    char found[256] = "";

    for (size_t i = 0; i < list->count; i++) {
        strcat(found, i == 0 ? "" : ",");
        strcat(found, device_id_format(list->items[i]).text);
    }
    assert_string_equal(found, wanted);
}

static void lists_are_read_and_added_to(void **state)
{
    struct device_id_list list = {0};

    (void)state;
    assert_false(device_id_list_has(&list, known[0].id));
    assert_int_equal(device_id_list_parse(&list, "nvidia2", NULL), 0);
    check_list(&list, "nvidia2");
    assert_int_equal(device_id_list_parse(&list, "amd0,nvidia0.3,nvidia0", NULL), 0);
    check_list(&list, "nvidia2,amd0,nvidia0.3,nvidia0");
    assert_true(device_id_list_has(&list, known[0].id));
    assert_true(device_id_list_has(&list, known[3].id));
    assert_false(device_id_list_has(&list, known[2].id));
    assert_false(device_id_list_has(&list, known[6].id));
    vector_finish(&list);
}

static void a_list_holds_nothing_twice(void **state)
{
    struct device_id_list list = {0};

    (void)state;
    assert_int_equal(device_id_list_parse(&list, "amd0,amd1,amd0", NULL), 0);
    assert_int_equal(device_id_list_parse(&list, "amd1,amd2,amd2", NULL), 0);
    check_list(&list, "amd0,amd1,amd2");
    vector_finish(&list);
}

static void bad_parts_of_lists_are_refused(void **state)
{
    static const struct {
        const char *list;
        const char *part;
    } cases[] = {
        {"", "''"},
        {",", "''"},
        {"amd0,", "''"},
        {",amd0", "''"},
        {"amd0,,amd1", "''"},
        {"amd0, amd1", "' amd1'"},
        {"amd0;amd1", "'amd0;amd1'"},
        {"amd0,all,amd1", "'all'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct device_id_list list = {0};
        char message[128];

        snprintf(message, sizeof(message), WANTED "%s", cases[i].part);
        assert_fails(device_id_list_parse(&list, cases[i].list, &error), BERTH_ERROR_SYNTAX, &error,
                     message);
        vector_finish(&list);
    }
}

static void a_list_has_an_end(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct device_id_list list = {0};
    char id[32];

    (void)state;
    for (unsigned i = 0; i < DEVICE_ID_LIST_MAX; i++) {
        snprintf(id, sizeof(id), "amd%u", i);
        assert_int_equal(device_id_list_parse(&list, id, NULL), 0);
    }
    assert_int_equal(device_id_list_parse(&list, id, NULL), 0); /* it is there already */
    assert_fails(device_id_list_parse(&list, "dri0", &error), BERTH_ERROR_LIMIT, &error,
                 "expected at most 4096 device ids, got more");
    assert_int_equal(list.count, DEVICE_ID_LIST_MAX);
    vector_finish(&list);
}

static void a_list_may_hold_indices(void **state)
{
    struct device_id_list list = {0};

    (void)state;
    assert_int_equal(device_id_list_parse(&list, "0", NULL), BERTH_ERROR_SYNTAX);
    assert_int_equal(device_id_list_parse_form(&list, "nvidia1", DEVICE_ID_OR_INDEX, NULL), 0);
    assert_false(device_id_list_is_unresolved(&list));
    assert_int_equal(device_id_list_parse_form(&list, "0,17", DEVICE_ID_OR_INDEX, NULL), 0);
    assert_true(device_id_list_is_unresolved(&list));
    assert_int_equal(list.count, 3);
    assert_string_equal(device_id_format(list.items[2]).text, "17");
    assert_int_equal(device_id_list_parse_form(&list, "00", DEVICE_ID_OR_INDEX, NULL),
                     BERTH_ERROR_SYNTAX);
    assert_int_equal(device_id_list_parse_form(&list, "-1", DEVICE_ID_OR_INDEX, NULL),
                     BERTH_ERROR_SYNTAX);
    assert_int_equal(device_id_list_parse_form(&list, "0.1", DEVICE_ID_OR_INDEX, NULL),
                     BERTH_ERROR_SYNTAX);
    vector_finish(&list);
}

static void indices_are_resolved(void **state)
{
    static const struct {
        const char *present;
        enum vendor vendor;
        const char *ids;
        const char *result; /* ids, or the error */
    } cases[] = {
        {"nvidia0,nvidia1", VENDOR_UNNAMED, "0", "nvidia0"},
        {"nvidia0,nvidia1", VENDOR_UNNAMED, "1,nvidia0", "nvidia1,nvidia0"},
        {"nvidia0,nvidia1", VENDOR_UNNAMED, "nvidia0,0,1", "nvidia0,nvidia1"},
        {"nvidia0,amd1", VENDOR_UNNAMED, "1", "amd1"},
        {"nvidia0,nvidia0.0,nvidia0.1", VENDOR_UNNAMED, "0", "nvidia0"},
        {"nvidia0,amd0", VENDOR_AMD, "0", "amd0"},
        {"nvidia0,amd0", VENDOR_UNNAMED, "0",
         "index 0 is ambiguous here: did you mean nvidia0 or amd0?"},
        {"nvidia0,nvidia1,nvidia2", VENDOR_UNNAMED, "7",
         "no device with index 7 here; there are nvidia0 to nvidia2"},
        {"nvidia0,nvidia1", VENDOR_UNNAMED, "7",
         "no device with index 7 here; there are nvidia0 and nvidia1"},
        {"nvidia0.0,nvidia0.1", VENDOR_UNNAMED, "0",
         "no device with index 0 here; there are nvidia0.0 and nvidia0.1"},
        {"intel0,nvidia0,nvidia2,amd0,amd1,amd2", VENDOR_UNNAMED, "4",
         "no device with index 4 here; there are intel0, nvidia0, nvidia2 and amd0 to amd2"},
        {"dri3", VENDOR_UNNAMED, "0", "no device with index 0 here; there is only dri3"},
        {"", VENDOR_UNNAMED, "0", "no device with index 0 here; there are none"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct device_id_list present = {0};
        struct device_id_list list = {0};
        int code;

        if (*cases[i].present != '\0')
            assert_int_equal(device_id_list_parse(&present, cases[i].present, NULL), 0);
        assert_int_equal(device_id_list_parse_form(&list, cases[i].ids, DEVICE_ID_OR_INDEX, NULL),
                         0);
        code = device_id_list_resolve(&list, cases[i].vendor, &present, &error);
        if (code == 0)
            check_list(&list, cases[i].result);
        else
            assert_fails(code, BERTH_ERROR_INVALID, &error, cases[i].result);
        vector_finish(&present);
        vector_finish(&list);
    }
}

static int parse_list(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct device_id_list list = {0};
    int code = device_id_list_parse(&list, context, &error);

    if (code == 0)
        check_list(&list, context);
    else
        assert_string_equal(error.message, "out of memory");
    vector_finish(&list);
    return code;
}

static void out_of_memory_is_reported(void **state)
{
    char ids[] = "amd0,amd1,amd2,amd3,amd4,amd5,amd6,amd7,amd8";

    (void)state;
    assert_true(failing_allocator_try_all(parse_list, ids) >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_written),
        cmocka_unit_test(ids_are_read),
        cmocka_unit_test(two_fit_into_one_expression),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(what_was_found_is_made_harmless),
        cmocka_unit_test(random_ids_come_back),
        cmocka_unit_test(random_texts_have_one_spelling),
        cmocka_unit_test(ids_are_equal_in_every_part),
        cmocka_unit_test(lists_are_read_and_added_to),
        cmocka_unit_test(a_list_holds_nothing_twice),
        cmocka_unit_test(bad_parts_of_lists_are_refused),
        cmocka_unit_test(a_list_has_an_end),
        cmocka_unit_test(a_list_may_hold_indices),
        cmocka_unit_test(indices_are_resolved),
        cmocka_unit_test(out_of_memory_is_reported),
    };

    return cmocka_run_group_tests_name("device_id", tests, NULL, NULL);
}
