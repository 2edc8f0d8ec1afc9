/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs that are followed by a word, each of which is like a verb of its own.
 */
#ifndef CLI_SUBCOMMANDS_H
#define CLI_SUBCOMMANDS_H

#include "cli/verbs.h"

/* The word alone: "check" of "spec check". */
const char *subcommand_name(const struct verb *word);

/* The word of the verb that argv[1] names. NULL when there is none to run, with the exit code: help
 * was asked for and is printed, or stderr says what was wanted, suggesting the nearest. */
const struct verb *subcommand_find(const struct verb *verb, int argc, char **argv, int *ret_exit);

/* Finds it and runs it. Returns the exit code. */
int subcommand_run(const struct verb *verb, int argc, char **argv);

#endif
