/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes changes to the environment as shell commands.
 */
#ifndef CLI_RUN_EXPORTS_H
#define CLI_RUN_EXPORTS_H

#include "base/text/text.h"

/* Appends the shell commands that change the environment `before` into `after`, both ended by NULL:
 * "unset NAME" and "export NAME='value'", one per line, with quoted values. */
void exports_write(char *const *before, char *const *after, struct text *out);

#endif
