/* SPDX-License-Identifier: Apache-2.0
 *
 * Shortens a history that breaks a promise.
 */
#ifndef PROMISES_SHRINK_H
#define PROMISES_SHRINK_H

#include "promises/run.h"

/* How histories run, and which failure is made up. */
struct search_terms {
    unsigned fault_at;  /* copied to struct run */
    struct text *trace; /* copied to struct run */
    bool twice;         /* a second run with `other_steps` must have the same events */
};

/* Makes up a history of at most `steps` operations and runs it. Returns whether all is well; if
 * not, the history ends with the operation that broke the promise of the verdict. The caller
 * finishes the history. */
bool history_make(struct history *history, uint64_t seed, size_t steps,
                  const struct search_terms *terms, struct tally *tally, struct verdict *verdict);

/* Runs a history again. Returns whether all is well. */
bool history_run(const struct history *history, const struct search_terms *terms,
                 struct verdict *verdict);

/* Removes operations that are not needed to break the same promise. The verdict becomes that of the
 * shorter history. */
void history_shrink(struct history *history, const struct search_terms *terms,
                    struct verdict *verdict);

#endif
