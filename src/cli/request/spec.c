/* SPDX-License-Identifier: Apache-2.0
 *
 * berth spec, and berth spec schema, which prints the JSON Schema.
 */
#include "cli/output.h"
#include "cli/subcommands.h"

/* The text of src/spec/workload.schema.json, which tools/embed.c puts into the program. */
extern const char *const workload_schema;

static const struct option_set *const no_sets[] = {NULL};

static int run_spec_schema_verb(int argc, char **argv);

static const struct verb verb_spec_schema = {
    .name = "spec schema",
    .usage = "",
    .summary = "print the JSON Schema of spec files",
    .description =
        "Prints a JSON Schema (draft 2020-12) that accepts the same files as 'berth spec check'. "
        "Editors use it to complete and explain fields. docs/SPEC.md shows how, and lists the few "
        "errors that a schema cannot find.",
    .examples = "berth spec schema\n"
                "berth spec schema >berth-spec.json\n",
    .sets = no_sets,
    .run = run_spec_schema_verb,
};

static int run_spec_schema_verb(int argc, char **argv)
{
    struct text text = {0};
    int code;

    if (!verb_begin(&verb_spec_schema, NULL, 0, argc, argv, &code))
        return code;
    text_append(&text, workload_schema);
    code = output_write(&text);
    text_finish(&text);
    return code;
}

static const struct verb *const subcommands[] = {
    &verb_spec_check,
    &verb_spec_schema,
    NULL,
};

static int run_spec_verb(int argc, char **argv)
{
    return subcommand_run(&verb_spec, argc, argv);
}

const struct verb verb_spec = {
    .name = "spec",
    .usage = "check FILE... | schema",
    .summary = "check spec files, or print their JSON Schema",
    .description =
        "A spec file describes a job in YAML or JSON: the devices it needs and its command. 'berth "
        "run --spec FILE' runs it. 'berth spec check FILE...' checks files and shows errors with "
        "their position. 'berth spec schema' prints the JSON Schema for editors and other "
        "programs.",
    .examples = "berth spec check train.yaml\n"
                "berth spec schema >berth-spec.json\n",
    .sets = no_sets,
    .subcommands = subcommands,
    .run = run_spec_verb,
};
