/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/json.h"

#include <berth/error.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/text/utf8.h"
#include "support/aborts.h"
#include "support/failing_allocator.h"

/* Writes one document with `write` and compares it. */
static void check(void (*write)(struct json *json), enum json_layout layout, const char *wanted)
{
    struct text text = {0};
    struct json json;

    json_start(&json, &text, layout);
    write(&json);
    json_finish(&json);
    assert_false(text_failed(&text));
    assert_string_equal(text_string(&text), wanted);
    text_finish(&text);
}

static void write_device(struct json *json)
{
    json_object_begin(json);
    json_key(json, "id");
    json_string(json, "nvidia0");
    json_key(json, "free");
    json_bool(json, true);
    json_key(json, "held");
    json_bool(json, false);
    json_key(json, "power");
    json_null(json);
    json_key(json, "links");
    json_array_begin(json);
    json_unsigned(json, 1);
    json_object_begin(json);
    json_key(json, "load");
    json_decimal(json, 125, 3);
    json_object_end(json);
    json_array_begin(json);
    json_array_end(json);
    json_object_begin(json);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}

static void lays_out(void **state)
{
    (void)state;
    check(write_device, JSON_COMPACT,
          "{\"id\":\"nvidia0\",\"free\":true,\"held\":false,\"power\":null,"
          "\"links\":[1,{\"load\":0.125},[],{}]}\n");
    check(write_device, JSON_INDENTED,
          "{\n"
          "  \"id\": \"nvidia0\",\n"
          "  \"free\": true,\n"
          "  \"held\": false,\n"
          "  \"power\": null,\n"
          "  \"links\": [\n"
          "    1,\n"
          "    {\n"
          "      \"load\": 0.125\n"
          "    },\n"
          "    [],\n"
          "    {}\n"
          "  ]\n"
          "}\n");
}

static void write_empty_object(struct json *json)
{
    json_object_begin(json);
    json_object_end(json);
}

static void write_empty_array(struct json *json)
{
    json_array_begin(json);
    json_array_end(json);
}

static void write_unknown(struct json *json)
{
    json_string(json, NULL);
}

static void write_extremes(struct json *json)
{
    json_array_begin(json);
    json_unsigned(json, 0);
    json_unsigned(json, UINT64_MAX);
    json_signed(json, 0);
    json_signed(json, -1);
    json_signed(json, INT64_MIN);
    json_signed(json, INT64_MAX);
    json_array_end(json);
}

static void any_value_is_a_document(void **state)
{
    static const enum json_layout layouts[] = {JSON_COMPACT, JSON_INDENTED};

    (void)state;
    for (size_t i = 0; i < COUNT(layouts); i++) {
        check(write_empty_object, layouts[i], "{}\n");
        check(write_empty_array, layouts[i], "[]\n");
        check(write_unknown, layouts[i], "null\n");
    }
    check(write_extremes, JSON_COMPACT,
          "[0,18446744073709551615,0,-1,-9223372036854775808,9223372036854775807]\n");
}

static void appends_to_what_is_there(void **state)
{
    struct text text = {0};
    struct json json;

    (void)state;
    for (int line = 0; line < 2; line++) {
        json_start(&json, &text, JSON_COMPACT);
        json_signed(&json, line);
        json_finish(&json);
    }
    assert_string_equal(text_string(&text), "0\n1\n");
    text_finish(&text);
}

static void writes_decimals(void **state)
{
    static const struct {
        int64_t value;
        unsigned decimals;
        const char *wanted;
    } cases[] = {
        {0, 0, "0\n"},
        {0, 18, "0\n"},
        {125, 3, "0.125\n"},
        {2000, 3, "2\n"},
        {2500, 3, "2.5\n"},
        {120, 0, "120\n"},
        {1, 18, "0.000000000000000001\n"},
        {-1, 1, "-0.1\n"},
        {-1, 18, "-0.000000000000000001\n"},
        {-2000, 3, "-2\n"},
        {-10, 0, "-10\n"},
        {INT64_MAX, 0, "9223372036854775807\n"},
        {INT64_MAX, 18, "9.223372036854775807\n"},
        {INT64_MIN, 0, "-9223372036854775808\n"},
        {INT64_MIN, 18, "-9.223372036854775808\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct text text = {0};
        struct json json;

        json_start(&json, &text, JSON_COMPACT);
        json_decimal(&json, cases[i].value, cases[i].decimals);
        json_finish(&json);
        assert_string_equal(text_string(&text), cases[i].wanted);
        text_finish(&text);
    }
}

/* Compares a string as value and as key. */
static void check_string(const char *string, const char *wanted)
{
    struct text text = {0};
    struct text document = {0};
    struct json json;

    json_start(&json, &text, JSON_COMPACT);
    json_object_begin(&json);
    json_key(&json, string);
    json_string(&json, string);
    json_object_end(&json);
    json_finish(&json);
    text_append_format(&document, "{\"%s\":\"%s\"}\n", wanted, wanted);
    assert_string_equal(text_string(&text), text_string(&document));
    assert_true(utf8_is_valid(text.bytes, text.length));
    text_finish(&document);
    text_finish(&text);
}

static void escapes_strings(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"plain / text", "plain / text"},
        {"\"\\", "\\\"\\\\"},
        {"\b\f\n\r\t", "\\b\\f\\n\\r\\t"},
        {"\x7F", "\\u007f"},
        {"\xC2\x80\xC2\x9F\u00A0", "\\u0080\\u009f\u00A0"},
        {"\u2027\u2028\u2029\u202F", "\u2027\\u2028\\u2029\u202F"},
        {"\u202Egnp.exe", "\\u202egnp.exe"},
        {"grüß 漢字 😀", "grüß 漢字 😀"},
        {"\uFFFD", "\uFFFD"},
        {"\U0010FFFF", "\U0010FFFF"},
        {"a\xFFz", "a\uFFFDz"},
        {"\xC0\x80", "\uFFFD\uFFFD"},
        {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
        {"\xF0\x9F\x98\"", "\uFFFD\\\""},
        {"\xE2\x82", "\uFFFD"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        check_string(cases[i][0], cases[i][1]);
}

static void escapes_every_control_byte(void **state)
{
    (void)state;
    for (char byte = 1; byte < ' '; byte++) {
        char wanted[16];

        if (strchr("\b\f\n\r\t", byte) != NULL)
            continue;
        snprintf(wanted, sizeof(wanted), "\\u%04x", (unsigned)byte);
        check_string((char[]){byte, '\0'}, wanted);
    }
}

static void nests_to_the_limit(void **state)
{
    struct text text = {0};
    struct json json;

    (void)state;
    json_start(&json, &text, JSON_COMPACT);
    for (int level = 0; level < JSON_DEPTH_MAX; level++)
        json_array_begin(&json);
    for (int level = 0; level < JSON_DEPTH_MAX; level++)
        json_array_end(&json);
    json_finish(&json);
    assert_int_equal(text.length, 2 * JSON_DEPTH_MAX + 1);
    for (size_t i = 0; i < JSON_DEPTH_MAX; i++) {
        assert_int_equal(text.bytes[i], '[');
        assert_int_equal(text.bytes[JSON_DEPTH_MAX + i], ']');
    }
    text_finish(&text);
}

/* The output of a misuse; never freed, because the process ends. */
static struct json *misused(void)
{
    static struct text text;
    static struct json json;

    json_start(&json, &text, JSON_COMPACT);
    return &json;
}

static void nest_too_deep(void)
{
    struct json *json = misused();

    for (int level = 0; level <= JSON_DEPTH_MAX; level++)
        json_array_begin(json);
}

static void finish_empty(void)
{
    json_finish(misused());
}

static void finish_open(void)
{
    struct json *json = misused();

    json_array_begin(json);
    json_finish(json);
}

static void write_two_documents(void)
{
    struct json *json = misused();

    json_null(json);
    json_null(json);
}

static void write_after_array(void)
{
    struct json *json = misused();

    write_empty_array(json);
    json_array_begin(json);
}

static void omit_key(void)
{
    struct json *json = misused();

    json_object_begin(json);
    json_null(json);
}

static void omit_value(void)
{
    struct json *json = misused();

    json_object_begin(json);
    json_key(json, "a");
    json_object_end(json);
}

static void write_two_keys(void)
{
    struct json *json = misused();

    json_object_begin(json);
    json_key(json, "a");
    json_key(json, "b");
}

static void key_in_array(void)
{
    struct json *json = misused();

    json_array_begin(json);
    json_key(json, "a");
}

static void key_at_top(void)
{
    json_key(misused(), "a");
}

static void key_without_name(void)
{
    struct json *json = misused();

    json_object_begin(json);
    json_key(json, NULL);
}

static void end_wrong_kind(void)
{
    struct json *json = misused();

    json_array_begin(json);
    json_object_end(json);
}

static void end_nothing(void)
{
    json_array_end(misused());
}

static void misuse_aborts(void **state)
{
    static void (*const misuses[])(void) = {
        nest_too_deep,    finish_empty,   finish_open,    write_two_documents, write_after_array,
        omit_key,         omit_value,     write_two_keys, key_in_array,        key_at_top,
        key_without_name, end_wrong_kind, end_nothing,
    };

    (void)state;
    for (size_t i = 0; i < COUNT(misuses); i++)
        assert_aborts(misuses[i]);
}

static int write_without_memory(void *context)
{
    struct text text = {0};
    struct json json;
    int result;

    (void)context;
    json_start(&json, &text, JSON_INDENTED);
    write_device(&json);
    json_finish(&json);
    result = text_failed(&text) ? BERTH_ERROR_MEMORY : 0;
    text_finish(&text);
    return result;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(write_without_memory, NULL) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lays_out),
        cmocka_unit_test(any_value_is_a_document),
        cmocka_unit_test(appends_to_what_is_there),
        cmocka_unit_test(writes_decimals),
        cmocka_unit_test(escapes_strings),
        cmocka_unit_test(escapes_every_control_byte),
        cmocka_unit_test(nests_to_the_limit),
        cmocka_unit_test(misuse_aborts),
        cmocka_unit_test(survives_lack_of_memory),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
