/* SPDX-License-Identifier: Apache-2.0
 *
 * Command-line options. Parsing, help and completion read the same tables.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <berth/error.h>
#include <stddef.h>

#include "base/text/text.h"
#include "spec/option.h"

/* The maximum number of sets of a verb. */
#define OPTION_SETS_MAX 16

/* A set of options and the struct that they fill. */
struct option_binding {
    const struct option_set *set;
    void *target; /* NULL: the options are accepted and ignored */
};

enum options_result {
    OPTIONS_CONTINUE,
    OPTIONS_HELP, /* -h or --help was given: print help and end */
};

/* The type of options_parse() and options_parse_mixed(). */
typedef int options_parser(const struct option_binding *bindings, size_t count, int argc,
                           char **argv, int *ret_operand, struct berth_error *error);

/* Parses options from argv[1] on: --name VALUE, --name=VALUE, -nVALUE, -n VALUE, -abc for letters
 * without values. Stops at the first operand or after "--" and stores the position of the first
 * operand in *ret_operand. The strings of argv are not copied. Returns an options_result, or a
 * negative code with a message that names the option and suggests the nearest one. */
options_parser options_parse;

/* Does the same for verbs without a command: options may also stand between and after the operands.
 * The operands are moved to the end of argv. */
options_parser options_parse_mixed;

/* Appends the options of the set as help text, without the heading, `width` columns wide. */
void options_describe(const struct option_set *set, size_t width, struct text *out);

/* Appends words wrapped to `width` columns. The first line continues at column `indent`; further
 * lines are indented to this column. */
void options_wrap(const char *words, size_t indent, size_t width, struct text *out);

#endif
