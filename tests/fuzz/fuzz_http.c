/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any bytes as an HTTP request. All spans of an accepted request lie within the input and
 * follow the rules. A complete request stays complete with any bytes after it.
 */
#include <stdint.h>
#include <string.h>

#include "support/require.h"
#include "web/http.h"
#include "web/listen_address.h"
#include "web/logins.h"
#include "web/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_span(struct span span, const char *bytes, size_t length)
{
    if (span.length == 0)
        return;
    require(span.bytes >= bytes && span.bytes + span.length <= bytes + length);
}

static void check_header(struct span span, const char *bytes, size_t length)
{
    check_span(span, bytes, length);
    for (size_t i = 0; i < span.length; i++)
        require(span.bytes[i] != '\n' && span.bytes[i] != '\r' && span.bytes[i] != '\0');
}

static void check_form(struct span form)
{
    struct text value = {0};

    if (!http_form_find(form, "token", &value))
        require(value.length == 0);
    require(value.length <= form.length && strlen(text_string(&value)) == value.length);
    text_finish(&value);
}

static void use(const struct http_request *request)
{
    static const struct token token = {.text = "0123456789abcdef", .length = 16};
    struct listen_address address = {.four = {.sin_family = AF_INET}};
    struct string_list names = {0};
    struct span value;

    check_form(request->query);
    check_form(request->body);
    if (http_cookie_find(request->cookie, LOGINS_COOKIE, &value))
        check_span(value, request->cookie.bytes, request->cookie.length);
    http_tag_matches(request->if_none_match, "\"x\"");
    listen_address_accepts_host(&address, &names, request->host);
    if (token_check(&token, request) == TOKEN_GOOD)
        require(request->authorization.length > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct http_request request;
    struct http_request again;
    int found = http_parse(bytes, size, &request);

    require(found == HTTP_COMPLETE || found == HTTP_INCOMPLETE || (found >= 400 && found < 600));
    if (found == HTTP_INCOMPLETE)
        require(size <= HTTP_HEAD_MAX + HTTP_BODY_MAX);
    if (found >= 400)
        require(strcmp(http_status_name(found), "Error") != 0);
    if (found != HTTP_COMPLETE)
        return 0;
    require(request.length <= size && request.path.length > 0 && request.path.bytes[0] == '/');
    require(request.body.length <= HTTP_BODY_MAX);
    check_header(request.path, bytes, size);
    check_header(request.query, bytes, size);
    check_header(request.host, bytes, size);
    check_header(request.authorization, bytes, size);
    check_header(request.cookie, bytes, size);
    check_header(request.if_none_match, bytes, size);
    check_header(request.origin, bytes, size);
    check_span(request.body, bytes, size);
    use(&request);
    require(http_parse(bytes, request.length, &again) == HTTP_COMPLETE);
    require(again.length == request.length && again.method == request.method);
    return 0;
}
