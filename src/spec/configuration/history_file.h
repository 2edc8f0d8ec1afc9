/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the file of a pool's past leases.
 */
#ifndef SPEC_CONFIGURATION_HISTORY_FILE_H
#define SPEC_CONFIGURATION_HISTORY_FILE_H

#include <berth/error.h>
#include <stdbool.h>

struct configured_history;
struct text;

/* The facts that the default path depends on. */
struct history_file_pool {
    const char *socket; /* of the pool: a path */
    bool is_own;        /* the pool is a user's own */
    bool is_made_up;    /* its devices are an inventory's */
};

/* Appends the default path: among the user's state, the machine's, or beside the socket. `home` and
 * `state` are HOME and XDG_STATE_HOME, NULL if not set. */
void history_file_default(const struct history_file_pool *pool, const char *home, const char *state,
                          struct text *out);

/* Finds the path by the configuration; the caller frees it. NULL: no history is kept. Fails with
 * BERTH_ERROR_MEMORY. */
int history_file_find(const struct history_file_pool *pool,
                      const struct configured_history *configured, char **ret_path,
                      struct berth_error *error);

#endif
