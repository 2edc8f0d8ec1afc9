/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the leases of a pool are written down.
 */
#ifndef DAEMON_HISTORY_FILE_H
#define DAEMON_HISTORY_FILE_H

#include "daemon/pool.h"

/* Where the history of such a pool is kept unless the configuration says something else: with the
 * user's other state, with the machine's, or beside the socket. `home` and `state` are HOME and
 * XDG_STATE_HOME, NULL when they are not set. Appends the path. */
void history_file_default(const struct pool_settings *settings, const char *home, const char *state,
                          struct text *out);

/* The path by the pool's rules as they are, which the caller frees; NULL: none is kept. Fails with
 * BERTH_ERROR_MEMORY. */
int history_file_find(const struct pool *pool, char **ret_path, struct berth_error *error);

#endif
