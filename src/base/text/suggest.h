/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean ...?"
 */
#ifndef BASE_TEXT_SUGGEST_H
#define BASE_TEXT_SUGGEST_H

#include <stddef.h>

/* A search for the name that somebody probably meant. Start with {.wanted = name}, offer every
 * known name, then read `best`: NULL when none is near. */
struct suggestion {
    const char *wanted;
    const char *best;
    size_t distance;
};

/* Compares one known name: insertions, deletions, replacements and swaps of neighbours count 1,
 * case does not count. A name is near when that is at most a third of the longer name's length,
 * rounded up; of equally near ones the first offered wins. Names over 64 bytes are never near.
 * Pure; never allocates. */
void suggest_compare(struct suggestion *nearest, const char *name);

#endif
