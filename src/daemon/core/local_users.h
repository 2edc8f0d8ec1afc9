/* SPDX-License-Identifier: Apache-2.0
 *
 * Users in /etc/passwd. Unlike getpwnam() this asks no name service, so it reads only a file of
 * root.
 */
#ifndef DAEMON_CORE_LOCAL_USERS_H
#define DAEMON_CORE_LOCAL_USERS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether the file has the name, and its uid. */
bool local_users_find_user(const char *name, uint32_t *ret_uid);

#endif
