/* SPDX-License-Identifier: Apache-2.0
 *
 * A cache of user names by uid. Zeroed memory is an empty cache. Only one thread may use a cache at
 * a time.
 */
#ifndef BASE_SYSTEM_USER_NAMES_H
#define BASE_SYSTEM_USER_NAMES_H

#include <stdint.h>

#include <berth/error.h>

#include "base/optional.h"
#include "base/text/text.h"
#include "base/vector.h"

struct user_name {
    uint32_t uid;
    char *name;
};

struct user_names {
    VECTOR_OF(struct user_name); /* in the order of the first lookups */
    struct user_name last;       /* a name that could not be cached */
};

/* Returns the user's name, or the uid in digits when there is no such user. The result is valid
 * until the next call. The name comes from the user database and may contain any bytes. Blocks as
 * long as the lookup in the user database does. */
const char *user_names_find(struct user_names *names, uint32_t uid);

/* The same for an optional uid; returns NULL when the uid is unknown. */
const char *user_names_find_optional(struct user_names *names, struct optional_number uid);

/* Appends the name of the user if `words` starts with "user 1000". Returns the length of the
 * replaced text; 0: nothing was appended, because the text starts otherwise or there is no such
 * user. */
size_t user_names_append_mention(struct user_names *names, const char *words, struct text *out);

/* Replaces each "user 1000" in the error's message by the user's name. Texts from the daemon have
 * numbers, because a lookup could block it. `error` may be NULL. Returns `code`. */
int user_names_explain(struct berth_error *error, int code);

void user_names_finish(struct user_names *names);

#endif
