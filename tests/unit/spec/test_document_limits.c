/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are refused: for their contents, or because they are too expensive.
 */
#include "support/unit.h"

#include "spec/document.h"

#include <string.h>
#include <time.h>

#include "base/count.h"
#include "support/spec/documents.h"

/* A text and the expected message after the file's name. */
struct refusal {
    const char *bytes;
    size_t length;
    const char *message;
};

static void check_refusals(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct text message = {0};

        text_append_format(&message, "%s%s", FILE_NAME, refusals[i].message);
        check_refused_bytes(refusals[i].bytes, refusals[i].length, BERTH_ERROR_SYNTAX,
                            text_string(&message));
        text_finish(&message);
    }
}

#define NOT_YAML "expected YAML or JSON: "
#define NOT_UTF8 "expected YAML or JSON in UTF-8: "

static void unterminated_texts_tell_where_they_began(void **state)
{
    static const struct refusal refusals[] = {
        {BYTES("a: \"b"), ":1:6: " NOT_YAML "found unexpected end of stream (while scanning a "
                          "quoted scalar from 1:4 on)"},
        {BYTES("\na: 'b\n\nc: d\n"), ":5:1: " NOT_YAML "found unexpected end of stream (while "
                                     "scanning a quoted scalar from 2:4 on)"},
        {BYTES("a: [b, c"), ":2:1: " NOT_YAML "did not find expected ',' or ']' (while parsing a "
                            "flow sequence from 1:4 on)"},
        {BYTES("a: {b: c"), ":2:1: " NOT_YAML "did not find expected ',' or '}' (while parsing a "
                            "flow mapping from 1:4 on)"},
        {BYTES("a: {b: c\nd: e\n"), ":2:2: " NOT_YAML "did not find expected ',' or '}' (while "
                                    "parsing a flow mapping from 1:4 on)"},
        {BYTES("{\"a\": [1, 2}"), ":1:12: " NOT_YAML "did not find expected ',' or ']' (while "
                                  "parsing a flow sequence from 1:7 on)"},
        {BYTES("a: ]"), ":1:4: " NOT_YAML "did not find expected node content"},
        {BYTES("[a, *"), ":1:6: " NOT_YAML "did not find expected alphabetic or numeric character "
                         "(while scanning an alias from 1:5 on)"},
        {BYTES("a: &"), ":1:5: " NOT_YAML "did not find expected alphabetic or numeric character "
                        "(while scanning an anchor from 1:4 on)"},
        {BYTES("a: !<x"), ":1:7: " NOT_YAML "did not find the expected '>' (while scanning a tag "
                          "from 1:4 on)"},
        {BYTES("\"\\x4"), ":1:4: " NOT_YAML "did not find expected hexdecimal number (while "
                          "parsing a quoted scalar from 1:1 on)"},
        {BYTES("%YAML"), ":1:6: " NOT_YAML "did not find expected version number (while "
                         "scanning a %YAML directive from 1:1 on)"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void misshapen_texts_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {BYTES("a: b: c"), ":1:5: " NOT_YAML "mapping values are not allowed in this context"},
        {BYTES("a: 1\n b: 2"), ":2:3: " NOT_YAML "mapping values are not allowed in this context"},
        {BYTES("- a\nb: c"), ":2:1: " NOT_YAML "did not find expected '-' indicator (while parsing "
                             "a block collection from 1:1 on)"},
        {BYTES("a:\n\t- b"), ":2:1: " NOT_YAML "use spaces to indent, not a tab"},
        {BYTES("ä: @x"), ":1:4: " NOT_YAML "found character that cannot start any token"},
        {BYTES("a: \"\\q\""), ":1:5: " NOT_YAML "found unknown escape character (while parsing a "
                              "quoted scalar from 1:4 on)"},
        {BYTES("\"\\ud800\""), ":1:4: " NOT_YAML "found invalid Unicode character escape code "
                               "(while parsing a quoted scalar from 1:1 on)"},
        {BYTES("[&a &b, *a]"), ":1:5: " NOT_YAML "did not find expected ',' or ']' (while parsing "
                               "a flow sequence from 1:1 on)"},
        {BYTES("%YAML 2.0\n--- a"), ":1:1: " NOT_YAML "found incompatible YAML document"},
        {BYTES("%FOO\n--- a"), ":1:5: " NOT_YAML "found unknown directive name (while scanning a "
                               "directive from 1:1 on)"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void only_one_document_is_wanted(void **state)
{
    static const struct refusal refusals[] = {
        {BYTES("--- a\n--- b\n"), ":2:1: expected one document, got another"},
        {BYTES("---\n---\n"), ":2:1: expected one document, got another"},
        {BYTES("a: b\n...\n---\nc: d\n"), ":3:1: expected one document, got another"},
        {BYTES("{}\n...\n{}\n"), ":3:1: " NOT_YAML "did not find expected <document start>"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {BYTES("a:\n - \xFF"), ":2:4: " NOT_UTF8 "invalid leading UTF-8 octet, got 0xFF"},
        {BYTES("a:\r\r - \xFF"), ":3:4: " NOT_UTF8 "invalid leading UTF-8 octet, got 0xFF"},
        {BYTES("a:\r\n - \xFF"), ":2:4: " NOT_UTF8 "invalid leading UTF-8 octet, got 0xFF"},
        {BYTES("ä: \xC3x"), ":1:5: " NOT_UTF8 "invalid trailing UTF-8 octet, got 0x78"},
        {BYTES("ä: \xC3"), ":1:4: " NOT_UTF8 "incomplete UTF-8 octet sequence"},
        {BYTES("\xC0\x80"), ":1:1: " NOT_UTF8 "invalid length of a UTF-8 sequence"},
        {BYTES("\xED\xA0\x80"), ":1:1: " NOT_UTF8 "invalid Unicode character, got 0xD800"},
        {BYTES("\xF5\x80\x80\x80"), ":1:1: " NOT_UTF8 "invalid Unicode character, got 0x140000"},
        {BYTES("\xEF\xBB\xBF"
               "a: \x01"),
         ":1:4: " NOT_UTF8 "control characters are not allowed, "
         "got 0x01"},
        {BYTES("a: \"ä\x07\""), ":1:6: " NOT_UTF8 "control characters are not allowed, got 0x07"},
        {BYTES("a: b\x1B[2J"), ":1:5: " NOT_UTF8 "control characters are not allowed, got 0x1B"},
        {BYTES("\x7F"), ":1:1: " NOT_UTF8 "control characters are not allowed, got 0x7F"},
        {BYTES("\0"), ":1:1: " NOT_UTF8 "control characters are not allowed, got 0x00"},
        {BYTES("a: b\n\0"), ":2:1: " NOT_UTF8 "control characters are not allowed, got 0x00"},
        {BYTES("\xFF\xFE"
               "a\0b"),
         ": byte 5: expected UTF-16: incomplete UTF-16 character"},
        {BYTES("\xFF\xFE"
               "a\0\x00\xDC"),
         ": byte 5: expected UTF-16: unexpected low surrogate area, "
         "got 0xDC00"},
        {BYTES("\xFE\xFF"
               "\xD8\x00"
               "\0a"),
         ": byte 5: expected UTF-16: expected low surrogate "
         "area, got 0x61"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void tags_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {BYTES("a: !!int 5"), ":1:4: expected a value without a YAML tag, got "
                              "'tag:yaml.org,2002:int'"},
        {BYTES("!x {}"), ":1:1: expected a value without a YAML tag, got '!x'"},
        {BYTES("[ä, !x []]"), ":1:5: expected a value without a YAML tag, got '!x'"},
        {BYTES("%TAG !e! tag:e,\n--- !e!x y"), ":2:5: expected a value without a YAML tag, got "
                                               "'tag:e,x'"},
        {BYTES("!e!x y"), ":1:1: " NOT_YAML "found undefined tag handle"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void aliases_need_a_complete_anchor(void **state)
{
    static const struct refusal refusals[] = {
        {BYTES("a: *b"), ":1:4: expected an anchor before its alias, got none for 'b'"},
        {BYTES("[*b, &b x]"), ":1:2: expected an anchor before its alias, got none for 'b'"},
        {BYTES("&a [*a]"), ":1:5: expected an alias to a complete value, got 'a' within itself"},
        {BYTES("&a {b: [{c: *a}]}"), ":1:13: expected an alias to a complete value, got 'a' "
                                     "within itself"},
        {BYTES("[&a x, &a [*a]]"), ":1:12: expected an alias to a complete value, got 'a' within "
                                   "itself"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void append_times(struct text *text, const char *what, size_t times)
{
    while (times-- > 0)
        text_append(text, what);
}

static void the_size_is_limited(void **state)
{
    struct document document;
    struct text text = {0};

    (void)state;
    text_append_repeated(&text, ' ', DOCUMENT_BYTES_MAX + 1U);
    check_refused_text(&text, BERTH_ERROR_LIMIT, "cannot read file.yaml: larger than 64 MiB");
    document = parse_bytes(text_string(&text), DOCUMENT_BYTES_MAX);
    assert_null(document.root);
    document_finish(&document);
    text_finish(&text);
}

#define TOO_DEEP "expected at most 32 levels of lists and mappings, got more"

static void the_depth_is_limited(void **state)
{
    static const char *const openings[] = {"[", "{a: ", "- ", "? "};

    (void)state;
    for (size_t i = 0; i < COUNT(openings); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct document document;
        struct text text = {0};

        append_times(&text, openings[i], 100000);
        assert_int_equal(document_parse(&document, "x", text.bytes, text.length, &error),
                         BERTH_ERROR_LIMIT);
        assert_non_null(strstr(error.message, ": " TOO_DEEP));
        text_finish(&text);
    }
    check_refused_bytes(BYTES("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
                        BERTH_ERROR_LIMIT, "file.yaml:1:33: " TOO_DEEP);
}

static void the_depth_is_exact(void **state)
{
    struct document document;
    struct text text = {0};

    (void)state;
    append_times(&text, "[", DOCUMENT_DEPTH_MAX);
    text_append(&text, "x");
    append_times(&text, "]", DOCUMENT_DEPTH_MAX);
    document = parse_bytes(text_string(&text), text.length);
    assert_int_equal(document.root->height, DOCUMENT_DEPTH_MAX);
    document_finish(&document);
    text_finish(&text);
}

static void aliases_reach_the_depth_too(void **state)
{
    struct document document;
    struct text text = {0};

    (void)state;
    /* An anchor of 16 levels, whose alias is below 15 levels, in a list: 32 levels. */
    text_append(&text, "- &a ");
    append_times(&text, "[", 16);
    append_times(&text, "]", 16);
    text_append(&text, "\n- ");
    append_times(&text, "[", 15);
    text_append(&text, "*a");
    append_times(&text, "]", 15);
    document = parse_bytes(text_string(&text), text.length);
    assert_int_equal(document.root->height, DOCUMENT_DEPTH_MAX);
    document_finish(&document);
    text_append(&text, "\n- ");
    append_times(&text, "[", 16);
    text_append(&text, "*a");
    append_times(&text, "]", 16);
    check_refused_text(&text, BERTH_ERROR_LIMIT, "file.yaml:3:19: " TOO_DEEP);
    text_finish(&text);
}

/* A text whose aliases expand to a billion values ("billion laughs"). */
static void append_laughs(struct text *text, const char *laugh)
{
    text_append_format(text, "- &a0 %s\n", laugh);
    for (int i = 1; i < 10; i++) {
        text_append_format(text, "- &a%d [", i);
        for (int j = 0; j < 10; j++)
            text_append_format(text, "%s*a%d", j == 0 ? "" : ", ", i - 1);
        text_append(text, "]\n");
    }
}

static void billion_laughs_are_refused_quickly(void **state)
{
    clock_t start = clock();
    struct text text = {0};

    (void)state;
    append_laughs(&text, "x");
    check_refused_text(&text, BERTH_ERROR_LIMIT,
                       "file.yaml:8:18: expected at most 4000000 values, with aliases written out, "
                       "got more");
    text_finish(&text);
    assert_true(clock() - start < CLOCKS_PER_SEC / 10);
}

static void long_texts_written_out_are_refused_too(void **state)
{
    char laugh[1001];
    struct text text = {0};

    (void)state;
    memset(laugh, 'x', sizeof(laugh) - 1);
    laugh[sizeof(laugh) - 1] = '\0';
    append_laughs(&text, laugh);
    check_refused_text(&text, BERTH_ERROR_LIMIT,
                       "file.yaml:6:33: expected at most 64 MiB of text, with aliases written out, "
                       "got more");
    text_finish(&text);
}

static void the_number_of_anchors_is_limited(void **state)
{
    struct document document;
    struct text text = {0};

    (void)state;
    for (int i = 0; i < DOCUMENT_ANCHORS_MAX; i++)
        text_append_format(&text, "- &a%d x\n", i);
    document = parse_bytes(text_string(&text), text.length);
    document_finish(&document);
    text_append(&text, "- &last x\n");
    check_refused_text(&text, BERTH_ERROR_LIMIT,
                       "file.yaml:257:3: expected at most 256 anchors, got more");
    text_finish(&text);
}

static void the_number_of_aliases_is_limited(void **state)
{
    struct document document;
    struct text text = {0};

    (void)state;
    text_append(&text, "- &a x\n");
    append_times(&text, "- *a\n", DOCUMENT_ALIASES_MAX);
    document = parse_bytes(text_string(&text), text.length);
    assert_int_equal(document.root->count, DOCUMENT_ALIASES_MAX + 1);
    document_finish(&document);
    text_append(&text, "- *a\n");
    check_refused_text(&text, BERTH_ERROR_LIMIT,
                       "file.yaml:100002:3: expected at most 100000 aliases, got more");
    text_finish(&text);
}

static void append_directives(struct text *text, int count)
{
    for (int i = 0; i < count; i++)
        text_append_format(text, "%%TAG !a%d! x\n", i);
    text_append(text, "---\nx\n");
}

static void the_number_of_directives_is_limited(void **state)
{
    struct document document;
    struct text text = {0};

    (void)state;
    append_directives(&text, DOCUMENT_DIRECTIVES_MAX);
    document = parse_bytes(text_string(&text), text.length);
    document_finish(&document);
    text_clear(&text);
    append_directives(&text, DOCUMENT_DIRECTIVES_MAX + 1);
    check_refused_text(&text, BERTH_ERROR_LIMIT,
                       "file.yaml:1:1: expected at most 64 %TAG lines, got more");
    text_finish(&text);
}

/* libyaml compares each directive with all others. */
static void many_directives_are_refused_quickly(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct document document;
    struct text text = {0};
    clock_t start;

    (void)state;
    append_directives(&text, 100000);
    start = clock();
    assert_int_equal(document_parse(&document, "x", text.bytes, text.length, &error),
                     BERTH_ERROR_LIMIT);
    assert_true(clock() - start < CLOCKS_PER_SEC);
    assert_non_null(strstr(error.message, ": expected at most 64 %TAG lines, got more"));
    text_finish(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unterminated_texts_tell_where_they_began),
        cmocka_unit_test(misshapen_texts_are_refused),
        cmocka_unit_test(only_one_document_is_wanted),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(tags_are_refused),
        cmocka_unit_test(aliases_need_a_complete_anchor),
        cmocka_unit_test(the_size_is_limited),
        cmocka_unit_test(the_depth_is_limited),
        cmocka_unit_test(the_depth_is_exact),
        cmocka_unit_test(aliases_reach_the_depth_too),
        cmocka_unit_test(billion_laughs_are_refused_quickly),
        cmocka_unit_test(long_texts_written_out_are_refused_too),
        cmocka_unit_test(the_number_of_anchors_is_limited),
        cmocka_unit_test(the_number_of_aliases_is_limited),
        cmocka_unit_test(the_number_of_directives_is_limited),
        cmocka_unit_test(many_directives_are_refused_quickly),
    };

    return cmocka_run_group_tests_name("document_limits", tests, NULL, NULL);
}
