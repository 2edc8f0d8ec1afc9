/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects a command to its pool.
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

/* Finds the pool and connects to its daemon. Starts the user's own daemon if none runs. `inventory`
 * is the value of --inventory; NULL: none. Blocks until the daemon answers, or for the timeout of
 * dial(). Fails with BERTH_ERROR_INVALID (no such inventory), or as dial(); needs no clean-up then.
 */
int connect_open(struct pool_connection *connection, const char *inventory,
                 struct berth_error *error);
void connect_close(struct pool_connection *connection);

/* Does the same for a request. Completes ids in the request that are only an index (--device 0)
 * with the vendor of the pool's device. Also fails with BERTH_ERROR_INVALID if that is ambiguous.
 *
 * If the daemon does not answer, the session prints this on standard error as a message of `verb`,
 * once, and waits on, at most for the request's --wait. With --nonblock it fails. `verb` is a
 * string that outlives the session; NULL: print nothing. */
int connect_open_for_request(struct pool_connection *connection, struct request_options *options,
                             const char *verb, struct berth_error *error);

/* The option --inventory, for verbs without a request. */
struct connect_options {
    const char *inventory;
};
extern const struct option_set connect_option_set;

#endif
