/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of options: name, argument and target. The command line, its help, its completion and
 * berth_request_set use the same tables.
 */
#ifndef SPEC_OPTION_H
#define SPEC_OPTION_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text/choice.h"

struct option {
    const char *name;             /* --name */
    char letter;                  /* -n; 0: none */
    const char *argument;         /* the name of the value in help; NULL: no value */
    const struct choice *choices; /* the allowed values; NULL: any */
    const char *help;
    size_t offset; /* of the member that the value sets, in the set's target */
    bool hidden;   /* for use between our own programs: not in help or completion */

    /* Puts the value (NULL: the option has none) into the member. Returns 0, or a negative code
     * with a message that does not repeat the option's name; the member is unchanged then. */
    int (*parse)(const struct option *option, void *member, const char *value,
                 struct berth_error *error);
};

/* Options that are listed under one heading. */
struct option_set {
    const char *heading;
    const char *verbs; /* the verbs that take these options, for messages; NULL: not in messages */
    const struct option *options;
    size_t count;
};

/* Returns the option with this name of `length` bytes; NULL if the set has none. */
const struct option *option_find(const struct option_set *set, const char *name, size_t length);

/* Puts the value into the set's target. Fails with BERTH_ERROR_INVALID if the value is missing or
 * not allowed, or as the option's `parse` does. The message does not repeat the option's name. */
int option_apply(const struct option *option, void *target, const char *value,
                 struct berth_error *error);

#endif
