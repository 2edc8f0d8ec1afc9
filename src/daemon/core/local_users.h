/* SPDX-License-Identifier: Apache-2.0
 *
 * Users and groups in /etc/passwd and /etc/group. Unlike getpwnam() these functions ask no name
 * service, so they read only two files of root.
 */
#ifndef DAEMON_CORE_LOCAL_USERS_H
#define DAEMON_CORE_LOCAL_USERS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether the file has the name, and its uid or gid. */
bool local_users_find_user(const char *name, uint32_t *ret_uid);
bool local_users_find_group(const char *name, uint32_t *ret_gid);

#endif
