/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-web as a whole: a reader of the pool's event stream that shows it over HTTP.
 */
#ifndef WEB_WEB_LOOP_H
#define WEB_WEB_LOOP_H

#include <berth/error.h>

#include "base/string_list.h"
#include "web/listen_address.h"

struct web_settings {
    struct listen_address address;
    const char *token;        /* the file; NULL: none is wanted, which only loopback allows */
    struct string_list hosts; /* further names that requests may be for */
    const char *inventory;    /* NULL: none was given */
    const char *job_mapping;  /* the directory; NULL: none */
};

/* Serves until SIGTERM or SIGINT; `ready` is called with the URL once it does. Fails with what
 * token_read, http_server_create and follower_open fail with. Everything of the settings stays the
 * caller's. */
int web_serve(const struct web_settings *settings, void (*ready)(const char *url),
              struct berth_error *error);

#endif
