/* SPDX-License-Identifier: Apache-2.0
 *
 * A change of environment as lines for a shell.
 */
#ifndef CLI_RUN_EXPORTS_H
#define CLI_RUN_EXPORTS_H

#include "base/text/text.h"

/* Appends what makes the environment `before` the one `after`, both ended by NULL: "unset NAME" and
 * "export NAME='value'", one a line, any value quoted. */
void exports_write(char *const *before, char *const *after, struct text *out);

#endif
