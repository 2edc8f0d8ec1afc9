/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_REQUEST_SPEC_H
#define CLI_REQUEST_SPEC_H

#include "cli/verbs.h"

/* The verb `berth spec check`. */
extern const struct verb verb_spec_check;

/* The text of src/spec/workload.schema.json, which tools/embed.c puts into the program. */
extern const char *const workload_schema;

#endif
