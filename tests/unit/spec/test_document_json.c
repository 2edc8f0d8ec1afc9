/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON that is not YAML, JSON that is also YAML, and text that only looks like JSON.
 */
#include "support/unit.h"

#include "spec/document.h"

#include <string.h>

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/spec/documents.h"

static void what_yaml_refuses_is_read(void **state)
{
    (void)state;
    check_tree(BYTES("[\"\\ud83d\\ude00\", 1]"), "@1:1[@1:2'😀' @1:18(1)]");
    check_tree(BYTES("[\"\\uD83D\\uDE00\\ud800\\udc00\\uDBFF\\uDFFF\"]"),
               "@1:1[@1:2'😀\U00010000\U0010FFFF']");
    check_tree(BYTES("[\"a\x7F\xC2\x80\xEF\xBF\xBF\", 1]"),
               "@1:1[@1:2'a\x7F\xC2\x80\xEF\xBF\xBF' @1:10(1)]");
    check_tree(BYTES("{\"a\"\n\n:\n1}"), "@1:1{@1:2'a' @4:1(1)}");
    check_tree(BYTES("{\r\n\t\"a\"\t:\r\t1\r\n,\"b\":2}"), "@1:1{@2:2'a' @3:2(1) @4:2'b' @4:6(2)}");
    check_tree(BYTES("\xEF\xBB\xBF \n {\"a\": \"\\/\"}\n\n"), "@2:2{@2:3'a' @2:8'/'}");
}

/* YAML treats these separators as line ends, and folds them. */
static void separators_of_lines_are_characters(void **state)
{
    (void)state;
    check_tree(BYTES("[\"a\xC2\x85"
                     "b\xE2\x80\xA8"
                     "c\xE2\x80\xA9"
                     "d\", 1]"),
               "@1:1[@1:2'a\xC2\x85"
               "b\xE2\x80\xA8"
               "c\xE2\x80\xA9"
               "d' @1:13(1)]");
}

static void numbers_are_kept_as_they_are_written(void **state)
{
    (void)state;
    check_tree(BYTES("[0,-0,10,1.50,-1.5e3,1E+2,1e-2,true,false,null]"),
               "@1:1[@1:2(0) @1:4(-0) @1:7(10) @1:10(1.50) @1:15(-1.5e3) @1:22(1E+2) "
               "@1:27(1e-2) @1:32(true) @1:37(false) @1:43(null)]");
}

/* All these texts are valid YAML. */
static void what_is_no_json_is_yaml(void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } samples[] = {
        {"[1,]", "@1:1[@1:2(1)]"},
        {"{\"a\": 1,}", "@1:1{@1:2'a' @1:7(1)}"},
        {"{\"a\": 1} # end", "@1:1{@1:2'a' @1:7(1)}"},
        {"[01, 1., .5, +1, 0x10, 1e, tru, nulls, -]",
         "@1:1[@1:2(01) @1:6(1.) @1:10(.5) @1:14(+1) @1:18(0x10) @1:24(1e) @1:28(tru) @1:33(nulls) "
         "@1:40(-)]"},
        {"{\"a\": 'b', c: d}", "@1:1{@1:2'a' @1:7'b' @1:12(c) @1:15(d)}"},
        {"[\"a\tb\"]", "@1:1[@1:2'a\tb']"},
        {"[\"\\x41\"]", "@1:1[@1:2'A']"},
        {"[\"\\ud83d\"]", NULL},
        {"[\"\\ude00\\ud83d\"]", NULL},
        {"[\"\\ud83d\\u0041\"]", NULL},
        {"[\"\\ud83dx\"]", NULL},
        {"[\"\\u12g4\"]", NULL},
        {"[\"a", NULL},
        {"[\"\xFF\"]", NULL},
        {"{\"a\" 1}", NULL},
        {"[1 2", NULL},
        {"[1] [2]", NULL},
        {"{\"a\": 1}}", NULL},
        {"[", NULL},
        {"{", NULL},
        {"{\"a\":", NULL},
        {"[1e", NULL},
        {"[\"\\", NULL},
        {"[\"\\u12", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(samples); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct document document;
        size_t length = strlen(samples[i].text);
        char *copy = exact_copy(samples[i].text, length);

        if (samples[i].wanted != NULL) {
            check_tree(samples[i].text, length, samples[i].wanted);
        } else {
            assert_int_equal(document_parse(&document, FILE_NAME, copy, length, &error),
                             BERTH_ERROR_SYNTAX);
            assert_int_equal(strncmp(error.message, FILE_NAME ":", strlen(FILE_NAME ":")), 0);
        }
        free(copy);
    }
}

static void append_repeated(struct text *text, const char *string, size_t times)
{
    while (times-- > 0)
        text_append(text, string);
}

static void json_has_the_limits_of_yaml(void **state)
{
    struct document document;
    struct text text = {0};

    (void)state;
    append_repeated(&text, "[", DOCUMENT_DEPTH_MAX);
    append_repeated(&text, "]", DOCUMENT_DEPTH_MAX);
    document = parse_bytes(text_string(&text), text.length);
    assert_int_equal(document.root->height, DOCUMENT_DEPTH_MAX);
    document_finish(&document);
    text_clear(&text);
    append_repeated(&text, "[", DOCUMENT_DEPTH_MAX + 1);
    append_repeated(&text, "]", DOCUMENT_DEPTH_MAX + 1);
    check_refused_text(&text, BERTH_ERROR_LIMIT,
                       FILE_NAME ":1:33: expected at most 32 levels of lists and mappings, got "
                                 "more");
    text_finish(&text);
}

/* ---- Texts that are both ---- */

static void append_blanks(struct text *text, struct test_random *random)
{
    static const char *const blanks[] = {"", "", "", " ", "  ", "\n", "\n  ", "\r\n"};

    text_append(text, blanks[test_random_below(random, COUNT(blanks))]);
}

static void append_string(struct text *text, struct test_random *random)
{
    static const char *const parts[] = {"a",    "B7",   " ",   "ä",       "漢", "😀", "\\n",
                                        "\\\"", "\\\\", "\\/", "\\u00e4", "#",  "'", ": "};

    text_append_char(text, '"');
    for (uint64_t left = test_random_below(random, 6); left > 0; left--)
        text_append(text, parts[test_random_below(random, COUNT(parts))]);
    text_append_char(text, '"');
}

static void append_value(struct text *text, struct test_random *random, unsigned depth)
{
    static const char *const words[] = {"0", "-1", "12.5", "1e9", "true", "false", "null"};
    uint64_t kind = test_random_below(random, depth > 4 ? 2 : 4);
    bool is_list = kind == 2;

    if (kind == 0) {
        text_append(text, words[test_random_below(random, COUNT(words))]);
        return;
    }
    if (kind == 1) {
        append_string(text, random);
        return;
    }
    text_append_char(text, is_list ? '[' : '{');
    for (uint64_t left = test_random_below(random, 4); left > 0; left--) {
        append_blanks(text, random);
        if (!is_list) {
            append_string(text, random);
            text_append(text, ": ");
        }
        append_value(text, random, depth + 1);
        append_blanks(text, random);
        if (left > 1)
            text_append_char(text, ',');
    }
    append_blanks(text, random);
    text_append_char(text, is_list ? ']' : '}');
}

/* Writes the tree of a list with this value and this end. */
static void show(const struct text *value, const char *end, struct text *out)
{
    struct document document;
    struct text list = {0};

    text_append_format(&list, "[%s%s", text_string(value), end);
    document = parse_bytes(text_string(&list), list.length);
    text_clear(out);
    write_node(document.root, out);
    document_finish(&document);
    text_finish(&list);
}

/* With a comment, the same text is YAML and not JSON. */
static void yaml_reads_the_same(void **state)
{
    struct test_random random = {1};
    struct text value = {0};
    struct text by_json = {0};
    struct text by_yaml = {0};

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        text_clear(&value);
        append_value(&value, &random, 0);
        show(&value, "]", &by_json);
        show(&value, "] # comment", &by_yaml);
        assert_string_equal(text_string(&by_json), text_string(&by_yaml));
    }
    text_finish(&value);
    text_finish(&by_json);
    text_finish(&by_yaml);
}

static int attempt(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct document document;
    int code = document_parse(&document, FILE_NAME, context, strlen(context), &error);

    if (code == 0)
        document_finish(&document);
    else
        assert_int_equal(error.code, code);
    return code;
}

static void out_of_memory_is_reported_at_every_allocation(void **state)
{
    static char text[] = "{\"a\": [1, {\"b\": \"\\u00e4\"}, []], \"c\": {}, \"d\": null}";

    (void)state;
    assert_true(failing_allocator_try_all(attempt, text) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_yaml_refuses_is_read),
        cmocka_unit_test(separators_of_lines_are_characters),
        cmocka_unit_test(numbers_are_kept_as_they_are_written),
        cmocka_unit_test(what_is_no_json_is_yaml),
        cmocka_unit_test(json_has_the_limits_of_yaml),
        cmocka_unit_test(yaml_reads_the_same),
        cmocka_unit_test(out_of_memory_is_reported_at_every_allocation),
    };

    return cmocka_run_group_tests_name("document_json", tests, NULL, NULL);
}
