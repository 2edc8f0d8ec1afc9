/* SPDX-License-Identifier: Apache-2.0
 *
 * berth spec: spec files, by the word that follows.
 */
#include "cli/spec.h"

#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/exit_codes.h"
#include "cli/output.h"

static const struct verb *const words[] = {
    &verb_spec_check,
    &verb_spec_schema,
    NULL,
};

/* Their names begin with that of the verb and a blank. */
static const char *word_of(const struct verb *verb)
{
    return strchr(verb->name, ' ') + 1;
}

static int fail_unknown(const char *found)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct nearest nearest = {.wanted = found};

    for (const struct verb *const *word = words; *word != NULL; word++)
        nearest_offer(&nearest, word_of(*word));
    if (nearest.best != NULL)
        error_set(&error, BERTH_ERROR_INVALID, "spec: no word %s, did you mean '%s'?",
                  quote(found).text, nearest.best);
    else
        error_set(&error, BERTH_ERROR_INVALID, "spec: no word %s (--help lists them)",
                  quote(found).text);
    return output_error(&error);
}

static int run(int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (argc < 2) {
        error_set(&error, BERTH_ERROR_INVALID, "spec: wanted %s, found nothing", verb_spec.usage);
        return output_error(&error);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_print_verb(&verb_spec);
    for (const struct verb *const *word = words; *word != NULL; word++) {
        if (strcmp(argv[1], word_of(*word)) == 0)
            return (*word)->run(argc - 1, argv + 1);
    }
    return fail_unknown(argv[1]);
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
    .run = run,
};
