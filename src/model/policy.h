/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of a placement policy: which of the devices that would do are taken. A policy is a
 * pure function over a const view; filters have been applied before it is asked, and it answers
 * the same question always with the same set.
 */
#ifndef MODEL_POLICY_H
#define MODEL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bitset.h"
#include "model/machine.h"

/* What a pool knows of one slot beside the machine's facts and loads. */
struct policy_slot {
    uint32_t tenants; /* leases on it */
    uint32_t picks;   /* advice given since its last figure: work that is on its way */
    uint64_t queued;  /* work that a program reported */
    uint64_t active;
    uint32_t weight;      /* 0 counts as 1 */
    uint32_t rank;        /* 1 is preferred to all others, then 2; 0: no rank */
    uint64_t served;      /* how often it was given or picked */
    uint64_t last_served; /* grows with every grant and pick of the pool; 0: never. The slots of
                             one grant have the same, or follow each other in their old order */
    uint64_t affinity;    /* the key that it served last; 0: none */
};

/* One question; all sets are over slots, 0 to machine->devices.count - 1 (their size may be
 * larger). */
struct policy_question {
    const struct machine *machine;
    const struct policy_slot *slots; /* by slot; NULL: nothing is known */
    const struct bitset *candidates; /* pass every filter and are free */
    const struct bitset *required;   /* must be among the chosen; a subset of the candidates */
    const struct bitset *avoided;    /* only if another will not do */
    size_t count;                    /* how many to choose: from the required ones' number to
                                        the candidates' */
    uint64_t affinity;               /* among equals, the devices that served it; 0: none */
    bool ranked;                     /* some of the slots have a rank */
};

struct policy {
    const char *name;
    const char *summary; /* what it prefers: "the lowest slots" */

    /* Compares two candidates: negative when `one` is to be preferred, positive when `other` is, 0
     * for equals; a strict weak order, or else which ones are chosen is not defined (as many as are
     * wanted all the same). NULL: all are equal. */
    int (*compare)(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other);

    /* Optional, in place of compare, for a policy that looks at whole sets: adds exactly
     * question->count candidates, the required ones among them, to ret_chosen, an empty set over
     * the same slots. Returns 0 or BERTH_ERROR_MEMORY. */
    int (*choose)(const struct policy *policy, const struct policy_question *question,
                  struct bitset *ret_chosen);

    void *context; /* of a program's own policy */
};

/* Compares two candidates in full: what is to be avoided last, then by the policy, then by
 * rank, then by affinity, then the lower slot. Never 0 for two slots. */
int policy_compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other);

/* Adds the policy's choice to ret_chosen, an empty set over the same slots: required ones, then the
 * best by policy_compare. Returns 0, or BERTH_ERROR_MEMORY with nothing added unless by the
 * policy's own choose. Takes O(candidates) where slots need not be compared, else
 * O(candidates x log count); allocates only to compare for more than 64 places. */
int policy_choose(const struct policy *policy, const struct policy_question *question,
                  struct bitset *ret_chosen);

#endif
