/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of submitted jobs: $XDG_STATE_HOME/berth/POOL/ID.log has the job's output, and ID.exit
 * its exit code after its end.
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

/* Requests the pool's name from the daemon: ids are unique only within a pool. The caller frees
 * *ret_pool, which is untouched on failure. Fails as session_request, or with BERTH_ERROR_SYNTAX
 * for a name that is unsafe as a directory name. */
int state_files_pool(struct session *session, char **ret_pool, struct berth_error *error);

/* Makes the names of a job's files, but no files. The caller finishes *ret_files, which is
 * untouched on failure. Fails with BERTH_ERROR_NOT_FOUND (neither XDG_STATE_HOME nor HOME) or
 * _MEMORY. */
int state_files_find(const char *pool, uint64_t id, struct state_files *ret_files,
                     struct berth_error *error);
void state_files_finish(struct state_files *files);

/* Creates the log and its missing directories, accessible only to the user. *ret_descriptor appends
 * to the log, and is close-on-exec. Fails with BERTH_ERROR_PERMISSION or _IO. */
int state_files_create_log(const struct state_files *files, int *ret_descriptor,
                           struct berth_error *error);

/* Writes the exit code. The file appears atomically. Fails as state_files_create_log. */
int state_files_write_exit(const struct state_files *files, int exit_code,
                           struct berth_error *error);

/* Reads the exit code. Fails with BERTH_ERROR_NOT_FOUND if there is no file, with
 * BERTH_ERROR_SYNTAX if it contains no exit code, or as file_read. */
int state_files_read_exit(const struct state_files *files, int *ret_exit_code,
                          struct berth_error *error);

#endif
