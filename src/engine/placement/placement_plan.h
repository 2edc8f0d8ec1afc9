/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of placement_find: what it keeps, and its words. Only for placement.c and
 * placement_why.c.
 */
#ifndef ENGINE_PLACEMENT_PLACEMENT_PLAN_H
#define ENGINE_PLACEMENT_PLACEMENT_PLAN_H

#include "engine/placement/filter.h"
#include "engine/placement/placement.h"
#include "engine/placement/placement_search.h"

struct plan {
    const struct placement_question *question;
    size_t device_count;
    size_t min;                     /* devices of each replica; what "all" means is counted */
    size_t max;                     /* the same, as far as they could ever be here */
    size_t counts[FILTER_VERDICTS]; /* devices by verdict */
    uint32_t *tenants;              /* by slot: claims an empty device has room for */
    struct bitset possible;         /* might do some day */
    struct bitset available;        /* do now */
    struct bitset avoided;
    struct placement_search search;
    void *tables;                /* of the policy; NULL: it has none */
    struct text words;           /* of the policy, on what it chose */
    const char *holders;         /* of busy devices that `counts` leaves out; NULL: none */
    struct placement *placement; /* the answer */
};

/* Whether each replica is a claim of its own. */
bool placement_plan_is_best_effort(const struct plan *plan);

/* Appends the reasons to the answer's `why`. */
void placement_plan_describe(const struct plan *plan);

#endif
