/* SPDX-License-Identifier: Apache-2.0
 *
 * What `berth submit` leaves on disk: $XDG_STATE_HOME/berth/POOL/ID.log with the job's output, and
 * ID.exit with its exit code once it has ended.
 */
#ifndef CLI_RUN_STATE_FILES_H
#define CLI_RUN_STATE_FILES_H

#include <berth/error.h>
#include <stdint.h>

#include "client/session.h"

/* The files of one job. */
struct state_files {
    char *directory;
    char *log;
    char *exit;
};

/* Asks the daemon which pool it is, as ids count within it. The caller frees *ret_pool, which is
 * untouched on failure. Fails as session_request, or with BERTH_ERROR_SYNTAX for a name that could
 * be no directory's. */
int state_files_pool(struct session *session, char **ret_pool, struct berth_error *error);

/* Finds their names; makes nothing. The caller finishes them; untouched on failure. Fails with
 * BERTH_ERROR_NOT_FOUND (neither XDG_STATE_HOME nor HOME) or _MEMORY. */
int state_files_find(const char *pool, uint64_t id, struct state_files *ret_files,
                     struct berth_error *error);
void state_files_finish(struct state_files *files);

/* Makes the log, and the directories above it where they are missing, for the user alone.
 * *ret_descriptor appends to it, and is close-on-exec. Fails with BERTH_ERROR_PERMISSION or _IO. */
int state_files_create_log(const struct state_files *files, int *ret_descriptor,
                           struct berth_error *error);

/* Writes the exit code, in one step for those who look. Fails as above. */
int state_files_write_exit(const struct state_files *files, int exit_code,
                           struct berth_error *error);

/* Reads it. Fails with BERTH_ERROR_NOT_FOUND when there is none, or as file_read; with
 * BERTH_ERROR_SYNTAX for a file with something else in it. */
int state_files_read_exit(const struct state_files *files, int *ret_exit_code,
                          struct berth_error *error);

#endif
