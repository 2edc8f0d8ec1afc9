/* SPDX-License-Identifier: Apache-2.0
 *
 * berth spec schema: what a spec file looks like, for programs.
 */
#include "base/text/json.h"
#include "cli/output.h"
#include "cli/spec.h"
#include "spec/workload.h"

static int run_spec_schema_verb(int argc, char **argv)
{
    struct text text = {0};
    struct json json;
    int code;

    if (!verb_begin(&verb_spec_schema, NULL, 0, argc, argv, &code))
        return code;
    json_start(&json, &text, JSON_INDENTED);
    workload_write_schema(&json);
    json_finish(&json);
    code = output_write(&text);
    text_finish(&text);
    return code;
}

static const struct option_set *const no_sets[] = {NULL};

const struct verb verb_spec_schema = {
    .name = "spec schema",
    .usage = "",
    .summary = "print the JSON Schema of spec files",
    .description = "Prints a JSON Schema (draft 2020-12) that accepts and refuses the same files "
                   "as 'berth spec check', for editors, which then complete and explain fields "
                   "while a file is written, and for other programs. docs/SPEC.md says how to use "
                   "it, and the little that it cannot tell.",
    .sets = no_sets,
    .run = run_spec_schema_verb,
};
