/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives the directory of the pool's socket from root to the user of --user.
 */
#ifndef DAEMON_POOL_DIRECTORY_H
#define DAEMON_POOL_DIRECTORY_H

#include <berth/error.h>

struct privileges_user;

/* Makes the user the owner of the socket's directory, and of the files that an earlier daemon of
 * root has left there. Creates the directory if it is missing. An existing directory must not be a
 * symlink, and only its owner may write to it. It must belong to the user, or to root with only
 * files of a daemon in it. Fails with BERTH_ERROR_PERMISSION, _NOT_FOUND, _IO or _MEMORY. */
int pool_directory_give(const struct privileges_user *user, const char *socket,
                        struct berth_error *error);

#endif
