/* SPDX-License-Identifier: Apache-2.0
 *
 * The two files that are written from the tables of spec files.
 */
#ifndef TOOLS_SPEC_WRITE_SPEC_H
#define TOOLS_SPEC_WRITE_SPEC_H

#include "base/text/text.h"
#include "schema.h"

/* The fields that do not go together in a spec file, ended by a row without a sentence. The reader
 * finds the same contradictions with request_options_resolve; tests compare the two. */
extern const struct contradiction spec_rules[];

/* Appends src/spec/workload.schema.json: a schema that accepts the same files as the reader. */
void spec_schema_write(struct text *out);

/* Appends docs/SPEC.md. */
void spec_document_write(struct text *out);

#endif
