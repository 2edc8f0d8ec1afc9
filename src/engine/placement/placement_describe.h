/* SPDX-License-Identifier: Apache-2.0
 *
 * The sentence why a request must wait or can never be satisfied, for plans and for claims.
 */
#ifndef ENGINE_PLACEMENT_PLACEMENT_DESCRIBE_H
#define ENGINE_PLACEMENT_PLACEMENT_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bitset.h"
#include "base/text/text.h"
#include "model/machine/machine.h"
#include "model/request.h"

/* The obstacles to a request. */
struct placement_obstacles {
    const struct machine *machine;
    const struct request *request;
    size_t min;                     /* devices of each replica, as a number also for "all" */
    const struct bitset *must;      /* devices that the request names */
    const size_t *counts;           /* devices by verdict: FILTER_VERDICTS numbers */
    const struct bitset *possible;  /* devices that may fit later */
    const struct bitset *available; /* devices that fit now */
    const uint32_t *room;           /* by slot: claims that fit */
    size_t replicas;                /* replicas that can be placed now */
    const char *holders;            /* text about busy devices that `counts` leaves out; may be
                                       empty */
};

/* Appends why the request must wait or, unless it is `satisfiable`, why these devices can never
 * satisfy it. */
void placement_describe_obstacles(const struct placement_obstacles *obstacles, bool satisfiable,
                                  struct text *why);

#endif
