/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a schema of small tables. End-to-end tests compare the schema of spec files with the
 * reader.
 */
#include "support/unit.h"

#include "schema.h"

#include <string.h>

#include "base/count.h"
#include "support/aborts.h"
#include "support/failing_allocator.h"
#include "write_spec.h"

static const struct choice colours[] = {{"red", 1}, {"blue", 2}, {0}};

static const struct field box_fields[] = {
    {.name = "colour",
     .type = &field_choice,
     .choices = colours,
     .help = "Which.",
     .default_text = "red",
     .example = "blue"},
    {.name = "size",
     .type = &field_number,
     .required = true,
     .min = 2,
     .max = 9,
     .help = "How large.",
     .default_text = "by its contents"},
};
static const struct record box_record = {
    .what = "box", .fields = box_fields, .field_count = COUNT(box_fields)};
static const struct field shelf_fields[] = {
    {.name = "box", .type = &field_record, .record = &box_record, .help = "A box on it."},
};
static const struct record shelf_record = {
    .what = "shelf", .fields = shelf_fields, .field_count = COUNT(shelf_fields)};
static const struct field room_fields[] = {
    {.name = "box", .type = &field_record, .record = &box_record, .help = "A box."},
    {.name = "shelf", .type = &field_record, .record = &shelf_record, .help = "A shelf."},
};
static const struct record room_record = {
    .what = "a room", .fields = room_fields, .field_count = COUNT(room_fields)};
static const struct movable box = {.path = "box", .elsewhere = "shelf.box"};

#define VALUES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Writes the schema of the room in one line; the caller finishes it. */
static struct text schema_with(const struct contradiction *rows)
{
    const struct schema_source source = {
        .id = "urn:room",
        .title = "room",
        .description = "A room.",
        .record = &room_record,
        .contradictions = rows,
        .movable = &box,
    };
    struct text text = {0};
    struct json json;

    json_start(&json, &text, JSON_COMPACT);
    schema_write(&json, &source);
    json_finish(&json);
    return text;
}

static void check_part(const struct contradiction *rows, const char *wanted)
{
    struct text text = schema_with(rows);

    if (strstr(text_string(&text), wanted) == NULL)
        fail_msg("expected %s in %s", wanted, text_string(&text));
    text_finish(&text);
}

static void records_are_written_once(void **state)
{
    struct text text = schema_with((struct contradiction[]){{0}});

    (void)state;
    assert_string_equal(
        text_string(&text),
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"urn:room\","
        "\"title\":\"room\",\"description\":\"A room.\","
        "\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
        "\"box\":{\"description\":\"A box.\",\"$ref\":\"#/$defs/box\"},"
        "\"shelf\":{\"description\":\"A shelf.\",\"$ref\":\"#/$defs/shelf\"}},\"allOf\":[],"
        "\"$defs\":{\"box\":{\"title\":\"box\",\"type\":[\"object\",\"null\"],\"required\":["
        "\"size\"],"
        "\"additionalProperties\":false,\"properties\":{"
        "\"colour\":{\"description\":\"Which.\",\"enum\":[\"red\",\"blue\",null],"
        "\"default\":\"red\",\"examples\":[\"blue\"]},"
        "\"size\":{\"description\":\"How large. When left out: by its contents.\","
        "\"type\":\"integer\",\"minimum\":2,\"maximum\":9}},\"allOf\":[]},"
        "\"shelf\":{\"title\":\"shelf\",\"type\":[\"object\",\"null\"],"
        "\"additionalProperties\":false,\"properties\":{"
        "\"box\":{\"description\":\"A box on it.\",\"$ref\":\"#/$defs/box\"}}}}}\n");
    text_finish(&text);
}

static void what_is_within_a_record_is_judged_there(void **state)
{
    const struct contradiction rows[] = {
        {.sentence = "no",
         .conditions = {{"box.size", CONDITION_GIVEN, NULL},
                        {"box.colour", CONDITION_NOT_GIVEN_AS, VALUES("red", "7")}}},
        {0},
    };

    (void)state;
    check_part(rows, "\"$ref\":\"#/$defs/shelf\"}},\"allOf\":[],\"$defs\"");
    check_part(rows,
               "\"allOf\":[{\"description\":\"no\",\"not\":{\"type\":\"object\",\"allOf\":["
               "{\"type\":\"object\",\"required\":[\"size\"],\"properties\":{\"size\":"
               "{\"not\":{\"type\":\"null\"}}}},"
               "{\"not\":{\"type\":\"object\",\"required\":[\"colour\"],\"properties\":{\"colour\":"
               "{\"enum\":[\"red\",\"7\",7]}}}}]}}]},\"shelf\"");
}

static void what_is_about_both_is_judged_at_the_top(void **state)
{
    const struct contradiction rows[] = {
        {.sentence = "no",
         .conditions = {{"shelf.box", CONDITION_LEFT_OUT, NULL},
                        {"box.colour", CONDITION_ANOTHER, VALUES("True", "true", "x")}}},
        {0},
    };

    (void)state;
    check_part(rows,
               "\"allOf\":[{\"description\":\"no\",\"not\":{\"type\":\"object\",\"allOf\":["
               "{\"not\":{\"type\":\"object\",\"required\":[\"shelf\"],\"properties\":{\"shelf\":"
               "{\"type\":\"object\",\"required\":[\"box\"],\"properties\":{\"box\":"
               "{\"not\":{\"type\":\"null\"}}}}}}},"
               "{\"anyOf\":[{\"type\":\"object\",\"required\":[\"box\"],\"properties\":{\"box\":"
               "{\"type\":\"object\",\"required\":[\"colour\"],\"properties\":{\"colour\":"
               "{\"not\":{\"enum\":[null,true,\"x\"]}}}}}},"
               "{\"type\":\"object\",\"required\":[\"shelf\"],\"properties\":{\"shelf\":"
               "{\"type\":\"object\",\"required\":[\"box\"],\"properties\":{\"box\":"
               "{\"type\":\"object\",\"required\":[\"colour\"],");
}

static void check_value(const char *written, const char *wanted)
{
    struct text text = {0};
    struct json json;

    json_start(&json, &text, JSON_COMPACT);
    schema_write_value(&json, written);
    json_finish(&json);
    assert_string_equal(text_string(&text), wanted);
    text_finish(&text);
}

static void values_are_what_yaml_makes_of_them(void **state)
{
    (void)state;
    check_value("4", "4\n");
    check_value("\"8.0\"", "\"8.0\"\n");
    check_value("'4'", "\"4\"\n");
    check_value("0.25", "0.25\n");
    check_value("true", "true\n");
    check_value("8GiB", "\"8GiB\"\n");
    check_value("[python, 5, false]", "[\"python\",5,false]\n");
    check_value("{gpu: {count: 1}}", "{\"gpu\":{\"count\":1}}\n");
    check_value("18446744073709551616", "\"18446744073709551616\"\n");
}

static void write_no_yaml(void)
{
    struct text text = {0};
    struct json json;

    json_start(&json, &text, JSON_COMPACT);
    schema_write_value(&json, "[");
}

static void a_value_that_is_none_is_our_bug(void **state)
{
    (void)state;
    assert_aborts(write_no_yaml);
}

static int write_all(void *unused)
{
    struct text text = {0};
    int code;

    (void)unused;
    spec_schema_write(&text);
    code = text_failed(&text) ? BERTH_ERROR_MEMORY : 0;
    text_finish(&text);
    return code;
}

static int write_document(void *unused)
{
    struct text text = {0};
    int code;

    (void)unused;
    spec_document_write(&text);
    code = text_failed(&text) ? BERTH_ERROR_MEMORY : 0;
    text_finish(&text);
    return code;
}

static void want_of_memory_is_remembered(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(write_all, NULL) > 100);
    assert_true(failing_allocator_try_all(write_document, NULL) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_written_once),
        cmocka_unit_test(what_is_within_a_record_is_judged_there),
        cmocka_unit_test(what_is_about_both_is_judged_at_the_top),
        cmocka_unit_test(values_are_what_yaml_makes_of_them),
        cmocka_unit_test(a_value_that_is_none_is_our_bug),
        cmocka_unit_test(want_of_memory_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
