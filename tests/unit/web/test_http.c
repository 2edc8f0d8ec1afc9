/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing of requests, forms, cookies and tags.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "web/http.h"

static int parse(const char *bytes, struct http_request *ret_request)
{
    return http_parse(bytes, strlen(bytes), ret_request);
}

static struct span span_of(const char *string)
{
    return (struct span){string, strlen(string)};
}

#define assert_span(span, wanted) assert_true(span_equals((span), (wanted)))

static void a_whole_request(void **state)
{
    const char *bytes = "GET /api/history?hours=3&x HTTP/1.1\r\n"
                        "hOST: localhost:7411\r\n"
                        "Authorization:Bearer abc\r\n"
                        "Cookie: a=b; c=d \r\n"
                        "If-None-Match: \"x\"\r\n"
                        "Sec-Fetch-Site: same-origin\r\n"
                        "Accept: */*\r\n"
                        "\r\nnext";
    struct http_request request;

    (void)state;
    assert_int_equal(parse(bytes, &request), HTTP_COMPLETE);
    assert_int_equal(request.method, HTTP_GET);
    assert_span(request.path, "/api/history");
    assert_span(request.query, "hours=3&x");
    assert_span(request.host, "localhost:7411");
    assert_span(request.authorization, "Bearer abc");
    assert_span(request.cookie, "a=b; c=d");
    assert_span(request.if_none_match, "\"x\"");
    assert_span(request.fetch_site, "same-origin");
    assert_true(request.keeps);
    assert_int_equal(request.body.length, 0);
    assert_int_equal(request.length, strlen(bytes) - strlen("next"));
}

static void a_body(void **state)
{
    const char *bytes = "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\ntoken=ab";
    struct http_request request;

    (void)state;
    assert_int_equal(parse(bytes, &request), HTTP_COMPLETE);
    assert_int_equal(request.method, HTTP_POST);
    assert_span(request.body, "token=a");
    assert_int_equal(request.length, strlen(bytes) - 1);
}

/* Every beginning of a request is incomplete, which is not an error. */
static void beginnings(void **state)
{
    const char *bytes = "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";

    (void)state;
    for (size_t length = 0; length < strlen(bytes); length++) {
        char *part = malloc(length + 1);
        struct http_request request = {.length = 77};

        assert_non_null(part);
        memcpy(part, bytes, length);
        assert_int_equal(http_parse(part, length, &request), HTTP_INCOMPLETE);
        assert_int_equal(request.length, 77);
        free(part);
    }
}

static void connections_that_stay(void **state)
{
    static const struct {
        const char *bytes;
        bool keeps;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, CLOSE\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\n\r\n", true},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
        {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_request request;

        assert_int_equal(parse(cases[i].bytes, &request), HTTP_COMPLETE);
        assert_int_equal(request.keeps, cases[i].keeps);
    }
}

static void methods(void **state)
{
    struct http_request request;

    (void)state;
    assert_int_equal(parse("HEAD / HTTP/1.0\r\n\r\n", &request), HTTP_COMPLETE);
    assert_int_equal(request.method, HTTP_HEAD);
    assert_int_equal(parse("get / HTTP/1.0\r\n\r\n", &request), HTTP_COMPLETE);
    assert_int_equal(request.method, HTTP_OTHER);
    assert_int_equal(parse("PROPFIND / HTTP/1.0\r\n\r\n", &request), HTTP_COMPLETE);
    assert_int_equal(request.method, HTTP_OTHER);
}

static void what_is_no_request(void **state)
{
    static const struct {
        const char *bytes;
        int status;
    } cases[] = {
        {"\r\n", 400},
        {"GET\r\n", 400},
        {"GET /\r\n", 400},
        {"G@T / HTTP/1.1\r\n", 400},
        {" / HTTP/1.1\r\n", 400},
        {"GET x HTTP/1.1\r\n", 400},
        {"GET / HTTP/1.1 \r\n", 505},
        {"GET / HTTP/3\r\n", 505},
        {"GET / FTP/1.1\r\n", 400},
        {"GET / HTTP/1.1\n", 400},
        {"GET /\t HTTP/1.1\r\n", 400},
        {"GET /\xc3\xa9 HTTP/1.1\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nnothing\r\n", 400},
        {"GET / HTTP/1.1\r\n: x\r\n", 400},
        {"GET / HTTP/1.1\r\nA\x01: x\r\n", 400},
        {"GET / HTTP/1.1\r\nA: \x01\r\n", 400},
        {"GET / HTTP/1.1\r\nA: b\rc\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400},
        {"GET / HTTP/1.1\r\nAuthorization: a\r\nauthorization: a\r\n", 400},
        {"GET / HTTP/1.1\r\nContent-Length: 1x\r\n", 400},
        {"GET / HTTP/1.1\r\nContent-Length:\r\n", 400},
        {"GET / HTTP/1.1\r\nContent-Length: +1\r\n", 400},
        {"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n", 400},
        {"GET / HTTP/1.1\r\nContent-Length: 4097\r\n", 413},
        {"GET / HTTP/1.1\r\nTransfer-Encoding: identity\r\n", 501},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_request request;

        assert_int_equal(parse(cases[i].bytes, &request), cases[i].status);
        assert_string_not_equal(http_status_name(cases[i].status), "Error");
    }
}

/* Builds a request with `lines` headers; all but Host have `line_length` bytes. */
static struct text long_request(const char *path, size_t lines, size_t line_length)
{
    struct text text = {0};

    text_append(&text, "GET ");
    text_append(&text, path);
    text_append(&text, " HTTP/1.1\r\nHost: x\r\n");
    for (size_t i = 1; i < lines; i++) {
        text_append(&text, "A:");
        text_append_repeated(&text, 'b', line_length - 4);
        text_append(&text, "\r\n");
    }
    text_append(&text, "\r\n");
    assert_false(text_failed(&text));
    return text;
}

static int parse_long(const char *path, size_t lines, size_t line_length)
{
    struct text text = long_request(path, lines, line_length);
    struct http_request request;
    int found = http_parse(text.bytes, text.length, &request);

    text_finish(&text);
    return found;
}

static void bounds(void **state)
{
    char path[HTTP_LINE_MAX + 1];
    struct http_request request;

    (void)state;
    assert_int_equal(parse_long("/", HTTP_HEADERS_MAX, 10), HTTP_COMPLETE);
    assert_int_equal(parse_long("/", HTTP_HEADERS_MAX + 1, 10), 431);
    assert_int_equal(parse_long("/", 11, 1600), HTTP_COMPLETE);
    assert_int_equal(parse_long("/", 12, 1600), 431);
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[HTTP_LINE_MAX - strlen("GET  HTTP/1.1")] = '\0';
    assert_int_equal(parse_long(path, 1, 10), HTTP_COMPLETE);
    path[strlen(path)] = 'a';
    path[HTTP_LINE_MAX - strlen("GET  HTTP/1.1") + 1] = '\0';
    assert_int_equal(parse_long(path, 1, 10), 414);
    path[0] = 'G';
    assert_int_equal(http_parse(path, sizeof(path), &request), 414);
}

static void forms(void **state)
{
    static const struct {
        const char *form;
        const char *key;
        const char *wanted; /* NULL: no such key */
    } cases[] = {
        {"token=abc", "token", "abc"},
        {"a=1&token=x+y%21%2b&token=second", "token", "x y!+"},
        {"token=", "token", ""},
        {"token", "token", NULL},
        {"", "token", NULL},
        {"&&&", "token", NULL},
        {"tokens=a", "token", NULL},
        {"token=%", "token", NULL},
        {"token=%4", "token", NULL},
        {"token=%4g", "token", NULL},
        {"token=a%00b", "token", NULL},
        {"token=%c3%a9", "token", "\xc3\xa9"},
        {"token=a=b", "token", "a=b"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct text found = {0};

        text_append(&found, ">");
        assert_int_equal(http_form_find(span_of(cases[i].form), cases[i].key, &found),
                         cases[i].wanted != NULL);
        assert_string_equal(text_string(&found) + 1,
                            cases[i].wanted == NULL ? "" : cases[i].wanted);
        text_finish(&found);
    }
}

static void cookies(void **state)
{
    struct span value;

    (void)state;
    assert_true(http_cookie_find(span_of("a=b; berth=c=d;x"), "berth", &value));
    assert_span(value, "c=d");
    assert_true(http_cookie_find(span_of("berth="), "berth", &value));
    assert_span(value, "");
    assert_false(http_cookie_find(span_of("xberth=a; berth"), "berth", &value));
    assert_false(http_cookie_find(span_of(""), "berth", &value));
    assert_false(http_cookie_find((struct span){0}, "berth", &value));
}

static void tags(void **state)
{
    (void)state;
    assert_true(http_tag_matches(span_of("\"a\""), "\"a\""));
    assert_true(http_tag_matches(span_of("\"b\" , W/\"a\""), "\"a\""));
    assert_true(http_tag_matches(span_of("*"), "\"a\""));
    assert_false(http_tag_matches(span_of("a"), "\"a\""));
    assert_false(http_tag_matches(span_of("\"ab\""), "\"a\""));
    assert_false(http_tag_matches((struct span){0}, "\"a\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_request), cmocka_unit_test(a_body),
        cmocka_unit_test(beginnings),      cmocka_unit_test(connections_that_stay),
        cmocka_unit_test(methods),         cmocka_unit_test(what_is_no_request),
        cmocka_unit_test(bounds),          cmocka_unit_test(forms),
        cmocka_unit_test(cookies),         cmocka_unit_test(tags),
    };

    return cmocka_run_group_tests_name("web http", tests, NULL, NULL);
}
