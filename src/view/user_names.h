/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of users by their numbers, each looked up once. Zeroed memory knows nobody yet. Not for
 * use by two threads at once.
 */
#ifndef VIEW_USER_NAMES_H
#define VIEW_USER_NAMES_H

#include <stdint.h>

#include "base/vector.h"
#include "model/optional.h"

struct user_name {
    uint32_t uid;
    char *name;
};

struct user_names {
    VECTOR_OF(struct user_name); /* in the order in which they were asked for */
    struct user_name last;       /* of one that could not be kept */
};

/* The name; the number in digits where nobody has it, or there is no memory. Good until the next
 * call. It may hold anything: whoever keeps the user database wrote it. May block as long as that
 * does. */
const char *user_names_find(struct user_names *names, uint32_t uid);

/* The same for one who may be unknown; then NULL. */
const char *user_names_find_optional(struct user_names *names, struct optional_number uid);

void user_names_finish(struct user_names *names);

#endif
