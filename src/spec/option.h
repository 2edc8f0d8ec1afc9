/* SPDX-License-Identifier: Apache-2.0
 *
 * Options by table: a name, what it takes and where that goes. The command line, its help and
 * berth_request_set all read the same rows.
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
    const char *argument;         /* what help calls the value; NULL: the option takes none */
    const struct choice *choices; /* the values there are; NULL: any */
    const char *help;
    size_t offset; /* of the member that the value goes to, in the set's target */
    bool hidden;   /* between programs of ours: help and completion leave it out */

    /* Puts the value (NULL when the option takes none) into the member. Returns 0 or a negative
     * code with a message that does not repeat the option's name; the member is as before then. */
    int (*parse)(const struct option *option, void *member, const char *value,
                 struct berth_error *error);
};

/* Options that are listed under one heading. */
struct option_set {
    const char *heading;
    const char *verbs; /* the verbs that take these options, for messages; NULL: not said */
    const struct option *options;
    size_t count;
};

/* The option of this name, `length` bytes long; NULL when the set has none. */
const struct option *option_find(const struct option_set *set, const char *name, size_t length);

/* Gives the option its value in the set's target. Fails with BERTH_ERROR_INVALID when there is a
 * value and none is taken, or the other way round, or as the option's `take`; the message does not
 * repeat the option's name. */
int option_apply(const struct option *option, void *target, const char *value,
                 struct berth_error *error);

#endif
