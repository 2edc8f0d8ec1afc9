/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of placement_find(): its state and its explanation. For placement.c and
 * placement_describe.c.
 */
#ifndef ENGINE_PLACEMENT_PLACEMENT_PLAN_H
#define ENGINE_PLACEMENT_PLACEMENT_PLAN_H

#include "engine/placement/filter.h"
#include "engine/placement/placement.h"
#include "engine/placement/placement_search.h"

struct plan {
    const struct placement_question *question;
    size_t device_count;
    size_t min;                     /* devices of each replica, as a number also for "all" */
    size_t max;                     /* the same, at most the devices of the largest group */
    size_t counts[FILTER_VERDICTS]; /* devices by verdict */
    uint32_t *tenants;              /* by slot: claims that fit on the empty device */
    struct bitset possible;         /* devices that may fit later */
    struct bitset available;        /* devices that fit now */
    struct bitset avoided;
    struct placement_search search;
    void *tables;                /* the policy's; NULL: none */
    struct text words;           /* the policy's explanation of its choice */
    struct placement *placement; /* the answer */
};

/* Returns whether each replica is a claim of its own. */
bool placement_is_best_effort(const struct request *request);

/* Appends the explanation to the answer's `why`. */
void placement_plan_describe(const struct plan *plan);

#endif
