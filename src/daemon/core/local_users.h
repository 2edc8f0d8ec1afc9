/* SPDX-License-Identifier: Apache-2.0
 *
 * The names and numbers of /etc/passwd or /etc/group. Unlike getpwnam() these functions ask no name
 * service, so they read only a file of root.
 */
#ifndef DAEMON_CORE_LOCAL_USERS_H
#define DAEMON_CORE_LOCAL_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"

struct local_user {
    const char *name; /* in the content */
    uint32_t number;
};

/* Zeroed memory has no names. */
struct local_users {
    VECTOR_OF(struct local_user); /* sorted by name */
    struct text content;
};

/* Reads the file at once, instead of its earlier content: lines NAME:...:NUMBER:... Invalid lines,
 * entries of name services (+ and -) and lines that do not fit into memory are left out. Without a
 * file there are no names. The caller finishes *users. */
void local_users_read(struct local_users *users, const char *path);
/* Does the same with a text, which it takes over. */
void local_users_parse(struct local_users *users, struct text *content);
void local_users_finish(struct local_users *users);

/* Returns whether there is the name, and the number of its first line. */
bool local_users_find(const struct local_users *users, const char *name, uint32_t *ret_number);

#endif
