/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of HTTP/1.1 as bytes from strangers. Pure functions over memory; nothing is copied: all
 * spans are parts of what was parsed.
 */
#ifndef WEB_HTTP_H
#define WEB_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/span.h"
#include "base/text/text.h"

#define HTTP_LINE_MAX    4096        /* the request's first line */
#define HTTP_HEAD_MAX    (16 * 1024) /* that and all headers */
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
    struct span path;  /* begins with a slash; as it was sent, nothing is decoded */
    struct span query; /* what follows the question mark; empty: nothing does */
    bool keeps;        /* the connection is to be used again */
    bool has_host;     /* what HTTP/1.1 demands, and 1.0 does not */

    /* Headers; empty where there is none. */
    struct span host;
    struct span authorization;
    struct span cookie;
    struct span if_none_match;
    struct span fetch_site;

    struct span body;
    size_t length; /* bytes of it all */
};

enum { HTTP_INCOMPLETE = 0, HTTP_COMPLETE = 1 };

/* Reads one request from the beginning of the bytes. Returns HTTP_COMPLETE; HTTP_INCOMPLETE when
 * more is to come; or the status (400 and more) that answers what is not a request of ours.
 * *ret_request is filled in only when it is complete. */
int http_parse(const char *bytes, size_t length, struct http_request *ret_request);

/* "Not Found" for 404; static. "Error" for one that we do not send. */
const char *http_status_name(int status);

/* Appends the value of `key` in a form (a=1&b=x+y%21), decoded. Returns false, with nothing
 * appended, when it is not there or is not encoded well or holds a zero byte. The first counts. */
bool http_form_find(struct span form, const char *key, struct text *out);

/* The value of a cookie in a Cookie header, as it is; false: there is none. */
bool http_cookie_find(struct span header, const char *name, struct span *ret_value);

/* Whether an If-None-Match header names this tag, which has its quotation marks. */
bool http_tag_matches(struct span header, const char *tag);

#endif
