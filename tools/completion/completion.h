/* SPDX-License-Identifier: Apache-2.0
 *
 * What the completions of all shells are made of: the verbs of berth, their options and what these
 * take. Each shell's file is a frame in its language (berth.bash, _berth, berth.fish) with tables
 * that are written here.
 */
#ifndef COMPLETION_COMPLETION_H
#define COMPLETION_COMPLETION_H

#include <stdbool.h>

#include "base/text/text.h"
#include "cli/verbs.h"

/* What can be offered for the value of an option. */
enum offer {
    OFFER_FLAG,    /* it takes none */
    OFFER_NOTHING, /* whatever it is, nobody can guess it */
    OFFER_CHOICES,
    OFFER_DEVICES,
    OFFER_DIRECTORIES,
    OFFER_FILES,
    OFFER_POLICIES,
    OFFER_USERS,
};
enum offer offer_of(const struct option *option);

/* Whether several may follow each other, with commas. */
bool offer_is_list(const struct option *option);

/* Appends the choices, or the policies, with blanks between. */
void offer_append_words(const struct option *option, struct text *out);

/* Calls `each` for every option of the verb that people may use, --help included, once. */
void options_each(const struct verb *verb,
                  void each(const struct verb *verb, const struct option *option, void *context),
                  void *context);

/* Calls `each` for every verb, and after those that words may follow, for these. */
void verbs_each(void each(const struct verb *verb, struct text *out), struct text *out);

/* The word alone: "check" of "spec check". */
const char *word_name(const struct verb *word);

/* The verb's name as part of a function's: "spec_check". */
void append_symbol(const struct verb *verb, struct text *out);

/* Appends in single quotes, for bash and zsh. */
void append_quoted(const char *string, struct text *out);

/* The tables of one shell. */
void write_bash(struct text *out);
void write_fish(struct text *out);
void write_zsh(struct text *out);

#endif
