/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/subcommands.h"

#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"
#include "base/text/suggest.h"
#include "cli/output.h"

const char *subcommand_name(const struct verb *subcommand)
{
    return strchr(subcommand->name, ' ') + 1;
}

static int fail_unknown_subcommand(const struct verb *verb, const char *found)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct suggestion nearest = {.wanted = found};

    for (const struct verb *const *sub = verb->subcommands; *sub != NULL; sub++)
        suggest_compare(&nearest, subcommand_name(*sub));
    if (nearest.best != NULL)
        error_set(&error, BERTH_ERROR_INVALID, "%s: no subcommand %s, did you mean '%s'?",
                  verb->name, quote(found).text, nearest.best);
    else
        error_set(&error, BERTH_ERROR_INVALID, "%s: no subcommand %s (--help lists them)",
                  verb->name, quote(found).text);
    return output_error(&error);
}

const struct verb *subcommand_find(const struct verb *verb, int argc, char **argv, int *ret_exit)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (argc < 2) {
        error_set(&error, BERTH_ERROR_INVALID, "%s: expected %s, got nothing", verb->name,
                  verb->usage);
        *ret_exit = output_error(&error);
        return NULL;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        *ret_exit = help_print_verb(verb);
        return NULL;
    }
    for (const struct verb *const *sub = verb->subcommands; *sub != NULL; sub++) {
        if (strcmp(argv[1], subcommand_name(*sub)) == 0)
            return *sub;
    }
    *ret_exit = fail_unknown_subcommand(verb, argv[1]);
    return NULL;
}

int subcommand_run(const struct verb *verb, int argc, char **argv)
{
    int exit_code;
    const struct verb *sub = subcommand_find(verb, argc, argv, &exit_code);

    return sub == NULL ? exit_code : sub->run(argc - 1, argv + 1);
}
