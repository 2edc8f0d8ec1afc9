/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of the command line: results on stdout, errors in one line on stderr.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <berth/error.h>

#include "base/text/text.h"

/* Writes the whole text to stdout. Returns EXIT_GOOD, or EXIT_BERTH after printing the error: the
 * text is incomplete because memory ran out, or stdout cannot be written. */
int output_write(const struct text *text);

/* Prints "berth: <message>" to stderr. Returns EXIT_BERTH if memory ran out, else EXIT_USAGE. */
int output_error(const struct berth_error *error);

/* Does the same for a verb that uses the pool. Returns exit_code_of_refusal(). */
int output_refusal(const struct berth_error *error);

#endif
