/* SPDX-License-Identifier: Apache-2.0
 *
 * Command-line options by table: parsing, help and completion all read the same rows.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <berth/error.h>
#include <stddef.h>

#include "base/text/text.h"
#include "spec/option.h"

/* A set and the struct that its options fill in. */
struct option_binding {
    const struct option_set *set;
    void *target; /* NULL: the options are read over */
};

enum options_result {
    OPTIONS_CONTINUE,
    OPTIONS_HELP, /* -h or --help was there: print help and end */
};

/* options_parse, or one like it. */
typedef int options_parser(const struct option_binding *bindings, size_t count, int argc,
                           char **argv, int *ret_operand, struct berth_error *error);

/* Reads options from argv[1] on: --name VALUE, --name=VALUE, -nVALUE, -n VALUE, -abc for letters
 * without values. Stops at the first operand or after "--" and puts its position into
 * *ret_operand. The strings of argv are not copied. Returns an options_result, or a negative code
 * with a message that names the option and suggests the nearest one. */
options_parser options_parse;

/* The same for words that no command follows: options may also stand between and behind the
 * operands, which are moved behind them all. */
options_parser options_parse_mixed;

/* Appends the set as help shows it, `width` columns wide. */
void options_describe(const struct option_set *set, size_t width, struct text *out);

/* Appends words wrapped to `width` columns, the second and later lines indented; the first starts
 * at column `indent` already. */
void options_wrap(const char *words, size_t indent, size_t width, struct text *out);

#endif
