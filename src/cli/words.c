/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/words.h"

#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/output.h"

static const char *word_of(const struct verb *verb)
{
    return strchr(verb->name, ' ') + 1;
}

static int fail_unknown(const struct verb *verb, const struct verb *const *words, const char *found)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct nearest nearest = {.wanted = found};

    for (const struct verb *const *word = words; *word != NULL; word++)
        nearest_offer(&nearest, word_of(*word));
    if (nearest.best != NULL)
        error_set(&error, BERTH_ERROR_INVALID, "%s: no word %s, did you mean '%s'?", verb->name,
                  quote(found).text, nearest.best);
    else
        error_set(&error, BERTH_ERROR_INVALID, "%s: no word %s (--help lists them)", verb->name,
                  quote(found).text);
    return output_error(&error);
}

int words_run(const struct verb *verb, const struct verb *const *words, int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (argc < 2) {
        error_set(&error, BERTH_ERROR_INVALID, "%s: wanted %s, found nothing", verb->name,
                  verb->usage);
        return output_error(&error);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_print_verb(verb);
    for (const struct verb *const *word = words; *word != NULL; word++) {
        if (strcmp(argv[1], word_of(*word)) == 0)
            return (*word)->run(argc - 1, argv + 1);
    }
    return fail_unknown(verb, words, argv[1]);
}
