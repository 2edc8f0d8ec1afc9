/* SPDX-License-Identifier: Apache-2.0
 *
 * The directory of the user's own daemon. By default it is below /tmp, where another user could
 * create it first. So it is trusted only if it is a directory, not a symlink, belongs to the user
 * and is closed to others.
 */
#ifndef CLIENT_USER_DIRECTORY_H
#define CLIENT_USER_DIRECTORY_H

#include <berth/error.h>

#include "client/pool_address.h"

/* Creates the directory (mode 0700) if it is missing, and checks it. The directory of an inventory
 * is within another one, which is created and checked too. The caller closes *ret_directory, an
 * O_PATH descriptor. Fails with BERTH_ERROR_PERMISSION (it belongs to another user, or is open to
 * others), _NOT_FOUND, _IO or _MEMORY. */
int user_directory_open(const struct pool_address *address, int *ret_directory,
                        struct berth_error *error);

/* Checks the directory if it exists, and creates nothing. Fails in the same way. */
int user_directory_check(const struct pool_address *address, struct berth_error *error);

/* Checks only the directory of the socket itself, in one system call. */
int user_directory_check_last(const struct pool_address *address, struct berth_error *error);

#endif
