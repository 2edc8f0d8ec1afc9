/* SPDX-License-Identifier: Apache-2.0
 *
 * The words that follow berth spec, each like a verb of its own. Their names hold both words.
 */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include "cli/verbs.h"

extern const struct verb verb_spec_check;
extern const struct verb verb_spec_schema;

#endif
