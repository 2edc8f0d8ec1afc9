/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of a placement policy: which of the devices that would do are taken. A policy is a
 * pure function over a const view; filters have been applied before it is asked, and it answers
 * the same question always with the same set.
 */
#ifndef MODEL_POLICY_H
#define MODEL_POLICY_H

#include <stddef.h>

#include "base/bitset.h"
#include "model/machine.h"

/* One question; all sets are over slots, 0 to machine->devices.count - 1. */
struct policy_question {
    const struct machine *machine;
    const struct bitset *candidates; /* pass every filter and are free */
    const struct bitset *required;   /* must be among the chosen; a subset of the candidates */
    const struct bitset *avoided;    /* only if another will not do */
    size_t count;                    /* how many to choose: from the required ones' number to
                                        the candidates' */
};

struct policy {
    const char *name;
    const char *summary; /* what it prefers: "the lowest slots" */

    /* Adds exactly question->count candidates, the required ones among them, to ret_chosen, an
     * empty set over the same slots. Returns 0 or BERTH_ERROR_MEMORY. */
    int (*choose)(const struct policy_question *question, struct bitset *ret_chosen);
};

#endif
