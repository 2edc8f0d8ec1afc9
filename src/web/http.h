/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing of HTTP/1.1 requests from untrusted clients. Pure functions. Nothing is copied: all spans
 * point into the parsed bytes.
 */
#ifndef WEB_HTTP_H
#define WEB_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/span.h"
#include "base/text/text.h"

#define HTTP_LINE_MAX    4096        /* the first line of a request */
#define HTTP_HEAD_MAX    (16 * 1024) /* the first line and all headers */
#define HTTP_HEADERS_MAX 64
#define HTTP_BODY_MAX    4096

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_OTHER,
};

struct http_request {
    enum http_method method;
    struct span path;  /* begins with a slash; not decoded */
    struct span query; /* after the question mark; may be empty */
    bool keeps;        /* keep-alive */
    bool has_host;     /* HTTP/1.1 requires it, 1.0 does not */

    /* Headers; empty if missing. */
    struct span host;
    struct span authorization;
    struct span cookie;
    struct span if_none_match;
    struct span fetch_site;
    struct span origin;

    struct span body;
    size_t length; /* of the whole request in bytes */
};

enum { HTTP_INCOMPLETE = 0, HTTP_COMPLETE = 1 };

/* Parses one request at the start of the bytes. Returns HTTP_COMPLETE; HTTP_INCOMPLETE if bytes are
 * missing; or the status (400 and more) to refuse the request with. Fills *ret_request only if the
 * request is complete. */
int http_parse(const char *bytes, size_t length, struct http_request *ret_request);

/* Returns the name of a status, a static string: "Not Found" for 404, "Error" for an unknown
 * status. */
const char *http_status_name(int status);

/* Appends the decoded value of the first `key` in a form (a=1&b=x+y%21). Returns false and appends
 * nothing if it is missing, is encoded wrongly, or has a zero byte. */
bool http_form_find(struct span form, const char *key, struct text *out);

/* Finds the value of a cookie in a Cookie header; not decoded. Returns false if there is none. */
bool http_cookie_find(struct span header, const char *name, struct span *ret_value);

/* Returns whether an If-None-Match header names this tag. The tag has its quotation marks. */
bool http_tag_matches(struct span header, const char *tag);

#endif
