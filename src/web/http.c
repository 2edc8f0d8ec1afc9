/* SPDX-License-Identifier: Apache-2.0 */
#include "web/http.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/count.h"

/* A request while it is parsed. */
struct http_reading {
    struct http_request request;
    bool is_newer; /* HTTP/1.1 */
    bool says_close;
    bool says_keep;
    bool has_length;
    size_t body_length;
};

static bool is_token_character(char character)
{
    if ((character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
        (character >= '0' && character <= '9'))
        return true;
    return character != '\0' && strchr("!#$%&'*+-.^_`|~", character) != NULL;
}

static bool is_token(struct span span)
{
    for (size_t i = 0; i < span.length; i++) {
        if (!is_token_character(span.bytes[i]))
            return false;
    }
    return span.length > 0;
}

static bool equals_ignoring_case(struct span span, const char *string)
{
    return strlen(string) == span.length && strncasecmp(span.bytes, string, span.length) == 0;
}

/* Splits the span after the first `end`. *ret_part is the text before it. */
static bool read_until(struct span *span, char end, struct span *ret_part)
{
    const char *found = span->length == 0 ? NULL : memchr(span->bytes, end, span->length);

    if (found == NULL)
        return false;
    *ret_part = (struct span){span->bytes, (size_t)(found - span->bytes)};
    span->bytes = found + 1;
    span->length -= ret_part->length + 1;
    return true;
}

static enum http_method find_method(struct span name)
{
    if (span_equals(name, "GET"))
        return HTTP_GET;
    if (span_equals(name, "HEAD"))
        return HTTP_HEAD;
    return span_equals(name, "POST") ? HTTP_POST : HTTP_OTHER;
}

static bool is_target(struct span target)
{
    for (size_t i = 0; i < target.length; i++) {
        if (target.bytes[i] <= ' ' || target.bytes[i] > '~')
            return false;
    }
    return target.length > 0 && target.bytes[0] == '/';
}

/* Parses the first line. Returns 0, or the status to refuse the request with. */
static int read_first_line(struct span line, struct http_reading *reading)
{
    struct http_request *request = &reading->request;
    struct span method;
    struct span target;

    if (!read_until(&line, ' ', &method) || !is_token(method) || !read_until(&line, ' ', &target) ||
        !is_target(target))
        return 400;
    if (span_equals(line, "HTTP/1.1"))
        reading->is_newer = true;
    else if (!span_equals(line, "HTTP/1.0"))
        return line.length > 5 && memcmp(line.bytes, "HTTP/", 5) == 0 ? 505 : 400;
    request->method = find_method(method);
    if (read_until(&target, '?', &request->path))
        request->query = target;
    else
        request->path = target;
    return 0;
}

static bool is_header_value(struct span value)
{
    for (size_t i = 0; i < value.length; i++) {
        unsigned char byte = (unsigned char)value.bytes[i];

        if ((byte < ' ' && byte != '\t') || byte == 0x7f)
            return false;
    }
    return true;
}

static int read_length(struct span value, struct http_reading *reading)
{
    uint64_t number;

    if (reading->has_length || !span_read_number(&value, &number) || value.length > 0)
        return 400;
    if (number > HTTP_BODY_MAX)
        return 413;
    reading->has_length = true;
    reading->body_length = (size_t)number;
    return 0;
}

static void read_connection(struct span value, struct http_reading *reading)
{
    while (value.length > 0) {
        struct span word;

        if (!read_until(&value, ',', &word)) {
            word = value;
            value.length = 0;
        }
        word = span_trim(word);
        reading->says_close |= equals_ignoring_case(word, "close");
        reading->says_keep |= equals_ignoring_case(word, "keep-alive");
    }
}

/* Headers whose values are stored as they are. */
static const struct {
    const char *name;
    size_t offset;
} kept_headers[] = {
    {"Authorization", offsetof(struct http_request, authorization)},
    {"Cookie", offsetof(struct http_request, cookie)},
    {"If-None-Match", offsetof(struct http_request, if_none_match)},
    {"Origin", offsetof(struct http_request, origin)},
    {"Sec-Fetch-Site", offsetof(struct http_request, fetch_site)},
};

static int store_header(struct span name, struct span value, struct http_reading *reading)
{
    for (size_t i = 0; i < COUNT(kept_headers); i++) {
        if (equals_ignoring_case(name, kept_headers[i].name)) {
            struct span *kept =
                (struct span *)(void *)((char *)&reading->request + kept_headers[i].offset);

            if (kept->bytes != NULL)
                return 400;
            *kept = value;
        }
    }
    return 0;
}

static int read_header(struct span line, struct http_reading *reading)
{
    struct span name;
    struct span value;

    if (!read_until(&line, ':', &name) || !is_token(name) || !is_header_value(line))
        return 400;
    value = span_trim(line);
    if (equals_ignoring_case(name, "Host")) {
        if (reading->request.has_host)
            return 400;
        reading->request.has_host = true;
        reading->request.host = value;
        return 0;
    }
    if (equals_ignoring_case(name, "Content-Length"))
        return read_length(value, reading);
    if (equals_ignoring_case(name, "Transfer-Encoding"))
        return 501;
    if (equals_ignoring_case(name, "Connection"))
        read_connection(value, reading);
    return store_header(name, value, reading);
}

/* Reads a line that ends with a carriage return and a newline. Returns HTTP_COMPLETE,
 * HTTP_INCOMPLETE or a status. */
static int read_line(struct span *rest, struct span *ret_line)
{
    if (!span_read_line(rest, ret_line))
        return HTTP_INCOMPLETE;
    return span_drop_suffix(ret_line, "\r") ? HTTP_COMPLETE : 400;
}

/* Reads all lines up to the empty one. Returns HTTP_COMPLETE, HTTP_INCOMPLETE or a status. */
static int read_head(struct span *rest, struct http_reading *reading)
{
    struct span line;
    int found = read_line(rest, &line);

    if (found == HTTP_INCOMPLETE)
        return rest->length > HTTP_LINE_MAX ? 414 : HTTP_INCOMPLETE;
    if (found != HTTP_COMPLETE)
        return found;
    if (line.length > HTTP_LINE_MAX)
        return 414;
    found = read_first_line(line, reading);
    for (size_t count = 0; found == 0; count++) {
        found = read_line(rest, &line);
        if (found != HTTP_COMPLETE || line.length == 0)
            return found;
        found = count == HTTP_HEADERS_MAX ? 431 : read_header(line, reading);
    }
    return found;
}

int http_parse(const char *bytes, size_t length, struct http_request *ret_request)
{
    struct http_reading reading = {0};
    struct http_request *request = &reading.request;
    struct span rest = {bytes, length};
    int found = read_head(&rest, &reading);

    if (found == HTTP_INCOMPLETE)
        return length > HTTP_HEAD_MAX ? 431 : HTTP_INCOMPLETE;
    if (found != HTTP_COMPLETE)
        return found;
    if (length - rest.length > HTTP_HEAD_MAX)
        return 431;
    if (reading.is_newer && !request->has_host)
        return 400;
    if (rest.length < reading.body_length)
        return HTTP_INCOMPLETE;
    request->keeps = !reading.says_close && (reading.is_newer || reading.says_keep);
    request->body = (struct span){rest.bytes, reading.body_length};
    request->length = length - rest.length + reading.body_length;
    *ret_request = *request;
    return HTTP_COMPLETE;
}

const char *http_status_name(int status)
{
    static const struct {
        int status;
        const char *name;
    } names[] = {
        {200, "OK"},
        {303, "See Other"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {421, "Misdirected Request"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < COUNT(names); i++) {
        if (names[i].status == status)
            return names[i].name;
    }
    return "Error";
}

static int digit_of(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    if (character >= 'a' && character <= 'f')
        return character - 'a' + 10;
    return character >= 'A' && character <= 'F' ? character - 'A' + 10 : -1;
}

/* Decodes the next character; -1: encoded wrongly. */
static int read_encoded(struct span *text)
{
    int high;
    int low;

    if (*text->bytes != '%') {
        char character = *text->bytes++;

        text->length--;
        return character == '+' ? ' ' : (unsigned char)character;
    }
    if (text->length < 3)
        return -1;
    high = digit_of(text->bytes[1]);
    low = digit_of(text->bytes[2]);
    text->bytes += 3;
    text->length -= 3;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static bool append_decoded(struct span value, struct text *out)
{
    size_t before = out->length;

    while (value.length > 0) {
        int character = read_encoded(&value);

        if (character <= 0) {
            out->length = before;
            if (out->bytes != NULL)
                out->bytes[before] = '\0';
            return false;
        }
        text_append_char(out, (char)character);
    }
    return true;
}

bool http_form_find(struct span form, const char *key, struct text *out)
{
    while (form.length > 0) {
        struct span value;
        struct span name;

        if (!read_until(&form, '&', &value)) {
            value = form;
            form.length = 0;
        }
        if (read_until(&value, '=', &name) && span_equals(name, key))
            return append_decoded(value, out);
    }
    return false;
}

bool http_cookie_find(struct span header, const char *name, struct span *ret_value)
{
    while (header.length > 0) {
        struct span value;
        struct span found;

        if (!read_until(&header, ';', &value)) {
            value = header;
            header.length = 0;
        }
        value = span_trim(value);
        if (read_until(&value, '=', &found) && span_equals(found, name)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

bool http_tag_matches(struct span header, const char *tag)
{
    while (header.length > 0) {
        struct span word;

        if (!read_until(&header, ',', &word)) {
            word = header;
            header.length = 0;
        }
        word = span_trim(word);
        span_skip_prefix(&word, "W/");
        if (span_equals(word, tag) || span_equals(word, "*"))
            return true;
    }
    return false;
}
