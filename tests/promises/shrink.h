/* SPDX-License-Identifier: Apache-2.0
 *
 * Shortens a history that breaks a promise.
 */
#ifndef PROMISES_SHRINK_H
#define PROMISES_SHRINK_H

#include "promises/run.h"

/* The failure to look for when histories run. */
struct search_terms {
    unsigned fault_at;  /* of struct run; 0: no made-up fault */
    struct text *trace; /* the same */
    bool twice;         /* a second run, in other steps through the time, must tell the same */
};

/* Makes up a history of at most `steps` operations and runs it. Returns whether all is well; if
 * not, the history ends with the operation that broke the promise of the verdict. The caller
 * finishes the history. */
bool history_make(struct history *history, uint64_t seed, size_t steps,
                  const struct search_terms *terms, struct tally *tally, struct verdict *verdict);

/* Runs a history again. Returns whether all is well. */
bool history_run(const struct history *history, const struct search_terms *terms,
                 struct verdict *verdict);

/* Removes operations that are not needed to break the same promise. The verdict is that of the
 * rest. */
void history_shrink(struct history *history, const struct search_terms *terms,
                    struct verdict *verdict);

#endif
