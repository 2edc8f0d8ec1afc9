/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the name that the user probably meant, for "did you mean X?".
 */
#ifndef BASE_TEXT_SUGGEST_H
#define BASE_TEXT_SUGGEST_H

#include <stddef.h>

/* A search for the nearest name. Start with {.wanted = name}, call suggest_compare for every known
 * name, then read `best`, which is NULL when no name is near. */
struct suggestion {
    const char *wanted;
    const char *best;
    size_t distance;
};

/* Compares one known name. The distance counts insertions, deletions, replacements and swaps of
 * neighbouring letters, and ignores case. A name is near when its distance is at most a third of
 * the longer name's length, rounded up. The first of equally near names wins. Names over 64 bytes
 * are never near. Never allocates. */
void suggest_compare(struct suggestion *nearest, const char *name);

#endif
