/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs that are followed by a word, each of which is like a verb of its own. The names of those
 * hold both: "spec check".
 */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "cli/verbs.h"

/* Runs the word that argv[1] names, answers --help for the verb itself, or says on stderr what was
 * wanted, suggesting the nearest. `words` is ended by NULL. Returns the exit code. */
int words_run(const struct verb *verb, const struct verb *const *words, int argc, char **argv);

#endif
