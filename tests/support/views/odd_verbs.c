/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs in the place of berth's own. Their help has every character with a meaning in a shell.
 */
#include "base/count.h"
#include "cli/verbs.h"

#define ODD "it's \"odd\": [a] {b} (c) `d` $e \\f \\\\ %s *?~#;&|<> é ]: \\"

static const struct choice odd_choices[] = {
    {"plain", 1},
    {"with-dash", 2},
    {0},
};

static const struct option odd_rows[] = {
    {.name = "flag", .letter = 'f', .help = ODD},
    {.name = "value", .letter = 'v', .argument = "[A:]'B'\\", .help = ODD},
    {.name = "choice", .argument = "ONE", .choices = odd_choices, .help = ODD},
    {.name = "hidden", .hidden = true, .help = ODD},
};

static const struct option_set odd_set = {
    .heading = "Options", .options = odd_rows, .count = COUNT(odd_rows)};
static const struct option_set repeated_set = {
    .heading = "Repeated", .options = odd_rows, .count = 1};
static const struct option_set *const odd_sets[] = {&odd_set, &repeated_set, NULL};

static const struct verb odd_word = {.name = "words odd", .summary = ODD, .sets = odd_sets};
static const struct verb *const odd_words[] = {&odd_word, NULL};

static const struct verb verb_odd = {.name = "odd", .summary = ODD, .sets = odd_sets};
static const struct verb verb_words = {
    .name = "words",
    .summary = ODD,
    .sets = odd_sets,
    .subcommands = odd_words,
};

const struct verb *const verbs[] = {&verb_odd, &verb_words, NULL};
