/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool that a command is about, and a conversation with its daemon.
 */
#ifndef CLI_CONNECT_H
#define CLI_CONNECT_H

#include "client/pool_address.h"
#include "client/session.h"
#include "spec/option.h"
#include "spec/request_options.h"

struct pool_connection {
    struct pool_address address;
    struct session session;
};

/* Finds the pool and dials, starting the user's own daemon where none runs. `inventory` is
 * --inventory's, NULL: none was given. Fails with BERTH_ERROR_INVALID (no such inventory), or as
 * dial; needs no clean-up then. */
int connect_open(struct pool_connection *connection, const char *inventory,
                 struct berth_error *error);
void connect_close(struct pool_connection *connection);

/* As connect_open, for a request. Gives the ids in the request that are only an index (--device 0)
 * the vendor of the pool's device; fails also with BERTH_ERROR_INVALID where that is not clear. */
int connect_open_for_request(struct pool_connection *connection, struct request_options *options,
                             struct berth_error *error);

/* For verbs that take no request: --inventory, which says which pool is meant. */
struct connect_options {
    const char *inventory;
};
extern const struct option_set connect_option_set;

#endif
