/* SPDX-License-Identifier: Apache-2.0
 *
 * berth spec: spec files, by the word that follows.
 */
#include "cli/spec.h"

#include "cli/subcommands.h"

static const struct verb *const subcommands[] = {
    &verb_spec_check,
    &verb_spec_schema,
    NULL,
};

static int run_spec_verb(int argc, char **argv)
{
    return subcommand_run(&verb_spec, argc, argv);
}

static const struct option_set *const no_sets[] = {NULL};

const struct verb verb_spec = {
    .name = "spec",
    .usage = "check FILE... | schema",
    .summary = "check spec files, or print their JSON Schema",
    .description = "A spec file says in YAML or JSON what a workload wants: 'berth run --spec "
                   "FILE' takes the request from it. 'berth spec check FILE...' says whether files "
                   "are good, and what is wrong at which place. 'berth spec schema' prints the "
                   "JSON Schema of spec files, for editors and other programs.",
    .sets = no_sets,
    .subcommands = subcommands,
    .run = run_spec_verb,
};
