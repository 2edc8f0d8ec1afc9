/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts that the completions of all shells share: the verbs of berth, their options and the
 * values of options. Each shell's file is a frame in its language (berth.bash, _berth, berth.fish);
 * this program writes the tables into it.
 */
#ifndef COMPLETION_COMPLETION_H
#define COMPLETION_COMPLETION_H

#include <stdbool.h>

#include "base/text/text.h"
#include "cli/verbs.h"

/* What the shell offers for the value of an option. */
enum offer {
    OFFER_FLAG,    /* the option takes no value */
    OFFER_NOTHING, /* the value cannot be guessed */
    OFFER_CHOICES,
    OFFER_DEVICES,
    OFFER_DIRECTORIES,
    OFFER_FILES,
    OFFER_POLICIES,
    OFFER_USERS,
};
enum offer offer_of(const struct option *option);

/* Returns true if the value is a list with commas. */
bool offer_is_list(const struct option *option);

/* Appends the choices or policies, separated by blanks. */
void offer_append_words(const struct option *option, struct text *out);

/* Calls `each` once for every option of the verb that is not hidden, --help included. */
void options_each(const struct verb *verb,
                  void each(const struct verb *verb, const struct option *option, void *context),
                  void *context);

/* Calls `each` for every verb, each followed by its subcommands. */
void verbs_each(void each(const struct verb *verb, struct text *out), struct text *out);

/* Returns the name of the subcommand alone: "check" of "spec check". */
const char *word_name(const struct verb *word);

/* Appends the verb's name as part of a function name: "spec_check". */
void append_symbol(const struct verb *verb, struct text *out);

/* Appends the string in single quotes, for bash and zsh. */
void append_quoted(const char *string, struct text *out);

/* Write the tables of one shell. */
void write_bash(struct text *out);
void write_fish(struct text *out);
void write_zsh(struct text *out);

#endif
