/* SPDX-License-Identifier: Apache-2.0
 *
 * The directory of the user's own daemon. It is below /tmp by default, where anybody may have been
 * first, so it is believed only when it is a directory, not a symlink, ours and closed to others.
 */
#ifndef CLIENT_USER_DIRECTORY_H
#define CLIENT_USER_DIRECTORY_H

#include <berth/error.h>

#include "client/pool_address.h"

/* Makes what is missing of it (0700) and checks it, and the one around that of an inventory
 * likewise. *ret_directory is a descriptor (O_PATH, close-on-exec), the caller's. Fails with
 * BERTH_ERROR_PERMISSION (somebody else's, or open to others), _NOT_FOUND, _IO or _MEMORY. */
int user_directory_open(const struct pool_address *address, int *ret_directory,
                        struct berth_error *error);

/* Checks it as far as it is there; makes nothing. Fails in the same way. */
int user_directory_check(const struct pool_address *address, struct berth_error *error);

/* Checks only the directory of the socket itself, in one system call. */
int user_directory_check_last(const struct pool_address *address, struct berth_error *error);

#endif
