/* SPDX-License-Identifier: Apache-2.0
 *
 * Subcommands of verbs, such as `spec check`. Each is a struct verb of its own.
 */
#ifndef CLI_SUBCOMMANDS_H
#define CLI_SUBCOMMANDS_H

#include "cli/verbs.h"

/* Returns the last word of the name: "check" of "spec check". */
const char *subcommand_name(const struct verb *subcommand);

/* Finds the subcommand of the verb that argv[1] names. Returns NULL with the exit code if there is
 * none to run, after printing the requested help, or an error with the nearest name. */
const struct verb *subcommand_find(const struct verb *verb, int argc, char **argv, int *ret_exit);

/* Finds the subcommand and runs it. Returns the exit code. */
int subcommand_run(const struct verb *verb, int argc, char **argv);

#endif
