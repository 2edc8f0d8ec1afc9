/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool that a command is about, and a conversation with its daemon.
 */
#ifndef CLI_CONNECT_H
#define CLI_CONNECT_H

#include "client/address.h"
#include "client/session.h"
#include "spec/option.h"
#include "spec/request_options.h"

struct reach {
    struct pool_address address;
    struct session session;
};

/* Finds the pool and dials, starting the user's own daemon where none runs. `inventory` is
 * --inventory's, NULL: none was given. Fails with BERTH_ERROR_INVALID (no such inventory), or as
 * dial; needs no clean-up then. */
int reach_open(struct reach *reach, const char *inventory, struct berth_error *error);
void reach_close(struct reach *reach);

/* As reach_open, for a request. Gives the ids in the request that are only an index (--device 0) the
 * vendor of the pool's device; fails also with BERTH_ERROR_INVALID where that is not clear. */
int reach_open_for(struct reach *reach, struct request_options *options, struct berth_error *error);

/* For verbs that take no request: --inventory, which says which pool is meant. */
struct reach_options {
    const char *inventory;
};
extern const struct option_set reach_option_set;

#endif
