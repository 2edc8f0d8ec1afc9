/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the devices for a request on a machine where some are busy, and explains the result.
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
    const struct bitset *busy; /* slots that are not available now */
    const enum filter_verdict
        *reason;               /* by slot: why it is busy; NULL or FILTER_PASSES: FILTER_BUSY */
    const struct bitset *must; /* slots that must be chosen */
    const uint32_t *left;      /* by slot: free millionths; NULL: all of a slot that is not busy */
};

struct placement {
    bool satisfiable;       /* the request fits if all devices are free and healthy */
    bool now;               /* the request fits now */
    size_t replicas;        /* replicas that fit now; all or none, except best-effort */
    struct slot_list slots; /* their slots, one replica after the other */
    struct slot_list sizes; /* number of slots of each replica */
    bool rated;             /* the policy rated nodes */
    int64_t score;          /* the policy's score, in its own units */
    bool proven;            /* no choice is better */
    struct text why;        /* explanation, one line */
};

/* Answers a question. If the request does not fit, that is an answer, not an error. Returns 0 with
 * a placement that the caller finishes, or BERTH_ERROR_MEMORY. Pure. */
int placement_find(const struct placement_question *question, struct placement *ret_placement,
                   struct berth_error *error);

void placement_finish(struct placement *placement);

#endif
