/* SPDX-License-Identifier: Apache-2.0
 *
 * The option --spec FILE: the request comes from a file, and the other options override it.
 */
#ifndef CLI_SPEC_OPTION_H
#define CLI_SPEC_OPTION_H

#include <berth/error.h>

#include "cli/options.h"

/* Applies --spec after `parse` has read argv into the bindings. If the request in a binding names a
 * spec file, reads the file into the request and parses the options once more over it; the targets
 * of all other bindings stay unchanged. An option also drops fields of the file that contradict it:
 * --sharing exclusive drops the file's share. Returns an options_result. Fails as workload_read. */
int spec_option_apply(const struct option_binding *bindings, size_t count, options_parser *parse,
                      int argc, char **argv, struct berth_error *error);

#endif
