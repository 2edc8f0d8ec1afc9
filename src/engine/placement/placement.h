/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices a request gets on a machine where some are busy, and why, or why not.
 */
#ifndef ENGINE_PLACEMENT_PLACEMENT_H
#define ENGINE_PLACEMENT_PLACEMENT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bitset.h"
#include "base/text/text.h"
#include "engine/placement/filter.h"
#include "engine/placement/placement_search.h"
#include "model/policy.h"
#include "model/request.h"

struct placement_question {
    const struct machine *machine;
    const struct request *request; /* validated */
    const struct policy *policy;
    const struct bitset *busy;         /* slots that cannot be had now */
    const enum filter_verdict *reason; /* by slot: why it is busy; NULL or passes: it just is */
    const struct bitset *must;         /* slots that have to be among the chosen */
    const uint32_t *left; /* by slot: millionths that nobody has; NULL: all of what is not busy */
};

struct placement {
    bool satisfiable;       /* the devices here could ever do, if all were free and well */
    bool now;               /* the request would be granted at once */
    size_t replicas;        /* that get their devices now; all or none but for best-effort */
    struct slot_list slots; /* of those replicas, one after the other */
    struct slot_list sizes; /* how many slots each of them has */
    bool rated;             /* by a policy that rates nodes, */
    int64_t score;          /* with so much, in its own units, */
    bool proven;            /* and nothing is better */
    struct text why;        /* for people, one line */
};

/* Answers a question; a request that cannot be met is an answer, not an error. Returns 0 with a
 * placement that the caller finishes, or BERTH_ERROR_MEMORY. Pure. */
int placement_find(const struct placement_question *question, struct placement *ret_placement,
                   struct berth_error *error);

void placement_finish(struct placement *placement);

#endif
