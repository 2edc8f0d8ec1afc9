/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "spec/document.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/spec/documents.h"
#include "support/temporary_directory.h"

/* A text and the expected document. */
struct sample {
    const char *text;
    const char *wanted;
};

static void check_samples(const struct sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_tree(samples[i].text, strlen(samples[i].text), samples[i].wanted);
}

static void positions_are_told(void **state)
{
    static const struct sample samples[] = {
        {"a", "@1:1(a)"},
        {"a: b", "@1:1{@1:1(a) @1:4(b)}"},
        {"a:\n  - b\n  - c: d\n", "@1:1{@1:1(a) @2:3[@2:5(b) @3:5{@3:5(c) @3:8(d)}]}"},
        {"\n\n  [a,\n b]", "@3:3[@3:4(a) @4:2(b)]"},
        {"{a: {b: [c]}}", "@1:1{@1:2(a) @1:5{@1:6(b) @1:9[@1:10(c)]}}"},
        {"# comment\na: b # another\nc: d", "@2:1{@2:1(a) @2:4(b) @3:1(c) @3:4(d)}"},
        {"a: b\r\nc: d\r\n", "@1:1{@1:1(a) @1:4(b) @2:1(c) @2:4(d)}"},
        {"a: b\rc: d\r", "@1:1{@1:1(a) @1:4(b) @2:1(c) @2:4(d)}"},
        {"--- \na: b\n...\n", "@2:1{@2:1(a) @2:4(b)}"},
        {"%YAML 1.1\n---\na", "@3:1(a)"},
        {"%TAG !x! y\n---\na", "@3:1(a)"},
    };

    (void)state;
    check_samples(samples, COUNT(samples));
}

static void columns_count_characters(void **state)
{
    static const struct sample samples[] = {
        {"ä: b", "@1:1{@1:1(ä) @1:4(b)}"},
        {"{größe: x, y: z}", "@1:1{@1:2(größe) @1:9(x) @1:12(y) @1:15(z)}"},
        {"[漢字, b]", "@1:1[@1:2(漢字) @1:6(b)]"},
        {"[😀😀, b]", "@1:1[@1:2(😀😀) @1:6(b)]"},
        {"[e\u0301, b]", "@1:1[@1:2(e\u0301) @1:6(b)]"}, /* a combining mark counts, too */
        {"[a,\tb]", "@1:1[@1:2(a) @1:5(b)]"},
    };

    (void)state;
    check_samples(samples, COUNT(samples));
}

static void json_is_read(void **state)
{
    static const struct sample samples[] = {
        {"{}", "@1:1{}"},
        {"[]", "@1:1[]"},
        {"{\"a\":\"b\"}", "@1:1{@1:2'a' @1:6'b'}"},
        {"{\"a\":1,\"b\":[true,null]}", "@1:1{@1:2'a' @1:6(1) @1:8'b' @1:12[@1:13(true) "
                                        "@1:18(null)]}"},
        {"{\n\t\"a\":\t[\n\t\t1,\n\t\t2\n\t]\n}\n", "@1:1{@2:2'a' @2:7[@3:3(1) @4:3(2)]}"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "@1:1'\"\\/\b\f\n\r\t'"},
        {"\"\\u00e4\\u20ac\"", "@1:1'ä€'"},
        {"  \"a\"  ", "@1:3'a'"},
        {"-1.5e3", "@1:1(-1.5e3)"},
    };

    (void)state;
    check_samples(samples, COUNT(samples));
}

static void quoted_and_plain_are_told_apart(void **state)
{
    static const struct sample samples[] = {
        {"[1, \"1\", '1']", "@1:1[@1:2(1) @1:5'1' @1:10'1']"},
        {"['it''s', \"a b\"]", "@1:1[@1:2'it's' @1:11'a b']"},
        {"a: |\n  x\n  y\n", "@1:1{@1:1(a) @1:4'x\ny\n'}"},
        {"a: >-\n  x\n  y\n", "@1:1{@1:1(a) @1:4'x y'}"},
        {"a: x\n  y\n", "@1:1{@1:1(a) @1:4(x y)}"},
        {"! 5", "@1:1(5)"},
    };

    (void)state;
    check_samples(samples, COUNT(samples));
}

static void nothing_has_several_spellings(void **state)
{
    static const char *const nothings[] = {"[~]", "[null]", "[Null]", "[NULL]", "- ", "- #x"};
    static const char *const somethings[] = {"['~']", "[\"null\"]", "['']", "[nil]", "[None]",
                                             "[0]",   "[false]",    "[[]]", "[{}]"};

    (void)state;
    for (size_t i = 0; i < COUNT(nothings); i++) {
        struct document document = parse_string(nothings[i]);

        assert_int_equal(document.root->count, 1);
        assert_true(document_node_is_null(document.root->items[0]));
        assert_string_equal(document_node_describe(document.root->items[0]).text, "nothing");
        document_finish(&document);
    }
    for (size_t i = 0; i < COUNT(somethings); i++) {
        struct document document = parse_string(somethings[i]);

        assert_int_equal(document.root->count, 1);
        assert_false(document_node_is_null(document.root->items[0]));
        document_finish(&document);
    }
}

static void nodes_are_described(void **state)
{
    static const struct sample samples[] = {
        {"a", "'a'"},
        {"\"~\"", "'~'"},
        {"~", "nothing"},
        {"[]", "a list of 0"},
        {"[1, 2, 3]", "a list of 3"},
        {"{}", "a mapping"},
        {"{a: b}", "a mapping"},
        {"\"a\\nb\\0c\"", "'a?b?c'"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(samples); i++) {
        struct document document = parse_string(samples[i].text);

        assert_string_equal(document_node_describe(document.root).text, samples[i].wanted);
        document_finish(&document);
    }
}

static void zero_bytes_are_kept(void **state)
{
    struct document document = parse_string("\"a\\0b\"");

    (void)state;
    assert_int_equal(document.root->length, 3);
    assert_memory_equal(document.root->text, "a\0b", 4);
    assert_false(document_node_is_null(document.root));
    document_finish(&document);
}

static void texts_without_a_value_have_no_root(void **state)
{
    static const char *const texts[] = {"",  "\n\n",         "# nothing\n", "  ",
                                        "#", "\xEF\xBB\xBF", "\r\n"};

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct document document = parse_string(texts[i]);

        assert_null(document.root);
        assert_string_equal(document.file, FILE_NAME);
        document_finish(&document);
    }
}

static void a_document_without_content_is_nothing(void **state)
{
    struct document document = parse_string("---\n");

    (void)state;
    assert_non_null(document.root);
    assert_true(document_node_is_null(document.root));
    document_finish(&document);
}

static void byte_order_marks_do_not_count(void **state)
{
    (void)state;
    check_tree(BYTES("\xEF\xBB\xBF{a: b}"), "@1:1{@1:2(a) @1:5(b)}");
}

static void utf_16_is_read(void **state)
{
    (void)state;
    check_tree(BYTES("\xFF\xFE[\0\xE4\0,\0 \0b\0]\0"), "@1:1[@1:2(ä) @1:5(b)]");
    check_tree(BYTES("\xFE\xFF\0[\0\xE4\0,\0 \0b\0]"), "@1:1[@1:2(ä) @1:5(b)]");
    check_tree(BYTES("\xFF\xFE\x3D\xD8\x00\xDE"), "@1:1(😀)");
}

static void aliases_stand_for_what_they_name(void **state)
{
    static const struct sample samples[] = {
        {"[&a b, *a]", "@1:1[@1:2(b) @1:8(b)]"},
        {"[&a \"b\", *a]", "@1:1[@1:2'b' @1:10'b']"},
        {"[&a [x], *a]", "@1:1[@1:2[@1:6(x)] @1:10[@1:6(x)]]"},
        {"{a: &m {x: y}, b: *m}",
         "@1:1{@1:2(a) @1:5{@1:9(x) @1:12(y)} @1:16(b) @1:19{@1:9(x) @1:12(y)}}"},
        {"{&k a: b, *k : c}", "@1:1{@1:2(a) @1:8(b) @1:11(a) @1:16(c)}"},
        {"[&a x, &b [*a, *a], *b]",
         "@1:1[@1:2(x) @1:8[@1:12(x) @1:16(x)] @1:21[@1:12(x) @1:16(x)]]"},
        {"[&a x, *a, &a y, *a]", "@1:1[@1:2(x) @1:8(x) @1:12(y) @1:18(y)]"},
        {"&a b", "@1:1(b)"},
    };

    (void)state;
    check_samples(samples, COUNT(samples));
}

static void weights_and_heights_count_aliases_written_out(void **state)
{
    struct document document = parse_string("[&a [x, [yy]], *a, {k: *a}]");
    const struct document_node *root = document.root;

    (void)state;
    assert_int_equal(root->items[0]->weight, 4);
    assert_int_equal(root->items[0]->height, 2);
    assert_int_equal(root->items[0]->bytes, 3);
    assert_false(root->items[0]->is_alias);
    assert_int_equal(root->items[1]->weight, 4);
    assert_int_equal(root->items[1]->height, 2);
    assert_true(root->items[1]->is_alias);
    assert_int_equal(root->items[2]->weight, 6);
    assert_int_equal(root->items[2]->height, 3);
    assert_int_equal(root->items[2]->bytes, 4);
    assert_int_equal(root->weight, 15);
    assert_int_equal(root->height, 4);
    assert_int_equal(root->bytes, 10);
    document_finish(&document);
}

static void errors_carry_the_position(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct document document = parse_string("[a,\n ä, b]");
    const struct document_node *node = document.root->items[2];

    (void)state;
    assert_int_equal(document_error(&document, node, &error, BERTH_ERROR_RANGE, "%s %d", "x", 5),
                     BERTH_ERROR_RANGE);
    assert_int_equal(error.code, BERTH_ERROR_RANGE);
    assert_string_equal(error.message, "file.yaml:2:5: x 5");
    snprintf(error.message, sizeof(error.message), "inner");
    assert_int_equal(document_wrap(&document, node, &error, BERTH_ERROR_LIMIT), BERTH_ERROR_LIMIT);
    assert_int_equal(error.code, BERTH_ERROR_LIMIT);
    assert_string_equal(error.message, "file.yaml:2:5: inner");
    assert_int_equal(document_error(&document, node, NULL, BERTH_ERROR_RANGE, "x"),
                     BERTH_ERROR_RANGE);
    document_finish(&document);
}

static void files_are_read(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct document document = {.file = "untouched"};
    FILE *file = fopen("good.yaml", "w");

    (void)state;
    assert_non_null(file);
    assert_true(fputs("a: b\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(document_read(&document, "none.yaml", &error), BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "cannot read none.yaml: No such file or directory");
    assert_string_equal(document.file, "untouched");
    assert_int_equal(document_read(&document, "good.yaml", &error), 0);
    assert_string_equal(document.file, "good.yaml");
    assert_int_equal(document.root->kind, NODE_MAPPING);
    document_finish(&document);
    assert_null(document.root);
    assert_int_equal(document.nodes.count, 0);
}

static int attempt(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct document document;
    int code = document_parse(&document, FILE_NAME, context, strlen(context), &error);

    if (code < 0) {
        assert_true(code != BERTH_ERROR_MEMORY || strstr(error.message, "out of memory") != NULL);
        return code;
    }
    document_finish(&document);
    return 0;
}

static void out_of_memory_is_reported_at_every_allocation(void **state)
{
    static char text[] =
        "%YAML 1.1\n%TAG !x! y\n---\n"
        "devices: &d\n"
        "  - {vendor: nvidia, \"index\": 0, name: 'a ''b'' c', list: [1, [2, 3]]}\n"
        "  - &e\n"
        "    ? key\n"
        "    : |\n"
        "      some lines\n"
        "      of text\n"
        "  - >-\n"
        "    folded\n"
        "    text that is long enough for a buffer of the parser to be grown: \n"
        "    0123456789012345678901234567890123456789012345678901234567890123456789\n"
        "  - \"\\u00e4 \\x41 \\\n     and on\"\n"
        "  - [[[[[[[[[[[[[[[[[[*e]]]]]]]]]]]]]]]]]]\n"
        "links: *d\n"
        "...\n";

    (void)state;
    assert_true(failing_allocator_try_all(attempt, text) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_told),
        cmocka_unit_test(columns_count_characters),
        cmocka_unit_test(json_is_read),
        cmocka_unit_test(quoted_and_plain_are_told_apart),
        cmocka_unit_test(nothing_has_several_spellings),
        cmocka_unit_test(nodes_are_described),
        cmocka_unit_test(zero_bytes_are_kept),
        cmocka_unit_test(texts_without_a_value_have_no_root),
        cmocka_unit_test(a_document_without_content_is_nothing),
        cmocka_unit_test(byte_order_marks_do_not_count),
        cmocka_unit_test(utf_16_is_read),
        cmocka_unit_test(aliases_stand_for_what_they_name),
        cmocka_unit_test(weights_and_heights_count_aliases_written_out),
        cmocka_unit_test(errors_carry_the_position),
        cmocka_unit_test_setup_teardown(files_are_read, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test(out_of_memory_is_reported_at_every_allocation),
    };

    return cmocka_run_group_tests_name("document", tests, NULL, NULL);
}
