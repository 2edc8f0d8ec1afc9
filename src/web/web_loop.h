/* SPDX-License-Identifier: Apache-2.0
 *
 * The main loop of berth web, which follows a pool and serves it over HTTP.
 */
#ifndef WEB_WEB_LOOP_H
#define WEB_WEB_LOOP_H

#include <berth/error.h>

#include "base/string_list.h"
#include "web/listen_address.h"

struct web_settings {
    struct listen_address address;
    int listener;             /* listens there already (listen_address_inherit); 0: none */
    const char *token;        /* the file; NULL: no token, which needs a loopback address */
    struct string_list hosts; /* further names that a Host header may have */
    const char *inventory;    /* the value of --inventory; NULL: none */
    const char *job_mapping;  /* the directory; NULL: none */
};

/* Serves until SIGTERM or SIGINT. Calls `ready` with the URL once it serves. The settings stay the
 * caller's. Fails as token_read(), job_mapping_open(), http_server_create() and follower_open(). */
int web_serve(const struct web_settings *settings, void (*ready)(const char *url),
              struct berth_error *error);

#endif
