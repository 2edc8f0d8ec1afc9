/* SPDX-License-Identifier: Apache-2.0
 *
 * The two ways out: results on stdout, one line on stderr when something is wrong.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <berth/error.h>

#include "base/text/text.h"

/* Writes the whole text to stdout. Returns EXIT_GOOD, or EXIT_BERTH after saying why: the text is
 * incomplete for want of memory, or stdout took no more. */
int output_write(const struct text *text);

/* Prints "berth: <message>" to stderr. Returns the exit code for the error: EXIT_BERTH when memory
 * or output failed, else EXIT_USAGE. */
int output_error(const struct berth_error *error);

/* The same for an error of the pool or of reaching it, or one of a verb that talks to it: the exit
 * code is exit_code_of_refusal's. */
int output_refusal(const struct berth_error *error);

#endif
