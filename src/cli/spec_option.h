/* SPDX-License-Identifier: Apache-2.0
 *
 * --spec FILE: the request of a file, with the other options of the line over it.
 */
#ifndef CLI_SPEC_OPTION_H
#define CLI_SPEC_OPTION_H

#include <berth/error.h>

#include "cli/options.h"

/* After `parse` has read argv into the bindings: where a request among them names a spec file, it
 * becomes the file's, and its options are read once more over that; all others are left alone. What
 * an option says leaves no doubt counts alone: --sharing exclusive also drops the file's share.
 * Fails as workload_read. */
int spec_option_apply(const struct option_binding *bindings, size_t count, options_parser *parse,
                      int argc, char **argv, struct berth_error *error);

#endif
