/* SPDX-License-Identifier: Apache-2.0
 *
 * Command-line options by table: parsing, help and completion all read the same rows.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/choice.h"
#include "base/text.h"

struct option {
    const char *name;             /* --name */
    char letter;                  /* -n; 0: none */
    const char *argument;         /* what help calls the value; NULL: the option takes none */
    const struct choice *choices; /* the values there are; NULL: any */
    const char *help;
    size_t offset; /* of the member that the value goes to, in the set's target */

    /* Puts the value (NULL when the option takes none) into the member. Returns 0 or a negative
     * code with a message that does not repeat the option's name. */
    int (*take)(const struct option *option, void *member, const char *value,
                struct berth_error *error);
};

/* Rows that belong together under one heading. */
struct option_set {
    const char *heading;
    const struct option *options;
    size_t count;
};

/* A set and the struct that its options fill in. */
struct option_binding {
    const struct option_set *set;
    void *target;
};

enum options_result {
    OPTIONS_GO_ON,
    OPTIONS_HELP, /* -h or --help was there: print help and end */
};

/* Reads options from argv[1] on: --name VALUE, --name=VALUE, -nVALUE, -n VALUE, -abc for letters
 * without values. Stops at the first operand or after "--" and puts its position into
 * *ret_operand. The strings of argv are not copied. Returns an options_result, or a negative code
 * with a message that names the option and suggests the nearest one. */
int options_parse(const struct option_binding *bindings, size_t count, int argc, char **argv,
                  int *ret_operand, struct berth_error *error);

/* Appends the set as help shows it, `width` columns wide. */
void options_describe(const struct option_set *set, size_t width, struct text *out);

/* Appends words wrapped to `width` columns, the second and later lines indented; the first starts
 * at column `indent` already. */
void options_wrap(const char *words, size_t indent, size_t width, struct text *out);

#endif
