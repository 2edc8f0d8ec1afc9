/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for the devices of a request's replicas. The engine and placement_find() use it. It
 * keeps its memory between searches.
 */
#ifndef ENGINE_PLACEMENT_PLACEMENT_SEARCH_H
#define ENGINE_PLACEMENT_PLACEMENT_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bitset.h"
#include "base/vector.h"
#include "engine/placement/node_view.h"
#include "engine/placement/placement_groups.h"
#include "model/policy.h"
#include "model/request.h"

struct slot_list {
    VECTOR_OF(size_t);
};

struct placement_search;

/* A question to the search. The caller assigns it as a whole, so that no value of an earlier
 * question stays; placement_search_bounds() sets `source`. Everything that it points to must
 * outlive the search. */
struct placement_query {
    const struct request *request;
    const struct policy *policy;
    size_t replicas;
    const struct policy_slot *slots; /* history of the slots; NULL: none */
    bool ranked;                     /* some slots have a rank */
    uint64_t affinity;
    const struct bitset *must;    /* slots that must be chosen; NULL: none */
    const struct bitset *avoided; /* slots chosen only if the others are too few */
    const uint32_t *source;       /* by slot: number of replicas that it has room for */
    const uint32_t *node_source;  /* by node: the same; NULL: no limit */

    /* Only for policies that rate nodes. */
    const void *tables; /* the policy's */
    uint32_t share;     /* millionths of each device that a replica takes */
    uint64_t draw;
    /* Returns the millionths left of a slot before this search; NULL: all of a slot with room. */
    uint32_t (*left)(const struct placement_search *search, size_t slot);
    const void *left_context;
    const struct host_usage *hosts; /* by node; NULL: no host is used */
    struct text *words;             /* gets the policy's explanations; NULL: not needed */
};

/* The state of a search. The caller sets `query`; the rest is internal, except for the answer. */
struct placement_search {
    const struct machine *machine;
    struct placement_query query;

    struct placement_groups groups;
    size_t size;             /* slots of all sets: at least the number of devices */
    uint32_t *room;          /* by slot: rest of query.source in this attempt */
    uint32_t *node_room;     /* by node: the same */
    uint32_t *node_replicas; /* by node: replicas of this attempt */
    struct bitset free;      /* devices that still have room */
    struct placement_search_group {
        size_t group;
        size_t lowest; /* lowest slot with room at the start */
    } * order;         /* the groups with room, lowest slots first */
    size_t group_count;
    size_t group_capacity;
    const struct placement_group *gathered; /* the group whose devices fill `candidates`, `plain`
                                               and `required`; NULL: these are empty */
    struct bitset must_left;                /* devices of query.must that no replica has yet */
    struct bitset candidates;
    struct bitset plain; /* candidates not avoided */
    struct bitset required;
    size_t plain_count; /* size of `plain` when it was gathered */
    struct bitset chosen;
    struct bitset used; /* devices of the replicas placed so far */
    struct slot_list
        slots_chosen;       /* the answer: slots of all replicas, one replica after the other */
    struct slot_list sizes; /* the answer: number of slots of each replica */
    size_t rated;           /* replicas whose node the policy rated */
    int64_t score;          /* sum of the scores of their offers */
    bool proven;            /* every offer is proven best */
};

/* Prepares a search over this machine, with sets of `size` slots. Returns 0 or BERTH_ERROR_MEMORY;
 * call placement_search_finish() in both cases. */
int placement_search_init(struct placement_search *search, const struct machine *machine,
                          size_t size);
void placement_search_finish(struct placement_search *search);

/* Adds the device of a new slot. Returns 0 or BERTH_ERROR_MEMORY. */
int placement_search_add_slot(struct placement_search *search, size_t slot);

/* Starts to place replicas on the devices in `from`. Returns 0 or BERTH_ERROR_MEMORY. */
int placement_search_start(struct placement_search *search, const struct bitset *from);

/* Discards all placed replicas. */
void placement_search_reset(struct placement_search *search);

/* Sets `candidates` to the devices of the group with room, `plain` to those not avoided, and
 * `required` to those in must_left. Returns the number of candidates; 0 also if the group's node is
 * full. */
size_t placement_search_gather_group(struct placement_search *search, size_t number);

/* Returns the group of a slot: its node and vendor, or only its node if vendors may mix. */
size_t placement_search_group(const struct placement_search *search, const struct request *request,
                              size_t slot);

/* Returns whether a replica may have devices of several vendors. */
bool placement_search_may_mix(const struct request *request);

/* Returns whether the policy rates this node. */
bool placement_search_is_rated(const struct placement_search *search, size_t node);

/* Rates the node for `count` of the gathered candidates. */
struct bid placement_search_rate_node(const struct placement_search *search, size_t node,
                                      size_t count, struct policy_offer *ret_offer);

/* Returns the sum of query.source over these devices. */
size_t placement_search_room(const struct placement_search *search, const struct bitset *from);

/* Finds the largest group in `from`, among equals the one with the lowest slot. Returns its number
 * of devices, 0 if `from` has no room, or BERTH_ERROR_MEMORY. */
int64_t placement_search_largest_group(struct placement_search *search, const struct bitset *from,
                                       size_t *ret_group);

/* Returns the question about the candidates for a policy. */
struct policy_question placement_search_question(const struct placement_search *search,
                                                 size_t count);

/* Gives a replica `count` of the candidates. Returns 1 or BERTH_ERROR_MEMORY. */
int placement_search_assign(struct placement_search *search, size_t count);

/* Places query.replicas replicas of `count` devices each on devices in `from`, all or none. Finds a
 * solution whenever one exists. Returns 1, 0 if there is no solution, or BERTH_ERROR_MEMORY. */
int placement_search_place(struct placement_search *search, const struct bitset *from,
                           size_t count);

/* Does the same as placement_search_place() with the largest possible count from `min` to `max`. */
int placement_search_place_largest(struct placement_search *search, const struct bitset *from,
                                   size_t min, size_t max);

/* Finds how many devices a replica may get. The bound is the largest group, so that a request for a
 * million devices is not tried with every number below. "all" means every device of the largest
 * group (FAIRNESS.md section 1); `tenants` becomes 0 for the others. `tenants` is the room on empty
 * devices, by slot; it becomes query.source. Returns 0 or BERTH_ERROR_MEMORY. */
int placement_search_bounds(struct placement_search *search, const struct bitset *possible,
                            uint32_t *tenants, size_t *ret_min, size_t *ret_max);

/* Returns whether one replica of this size fits on the devices of the last
 * placement_search_start(). */
bool placement_search_has_group(const struct placement_search *search, size_t count);

/* Finds whether all replicas could ever be placed on these devices. Call placement_search_bounds()
 * with the same devices right before. Tries every count, because a low one is easier to place but
 * may not include all of query.must. Returns like placement_search_place(), but places nothing. */
int placement_search_could_ever(struct placement_search *search, const struct bitset *possible,
                                size_t min, size_t max);

/* Gives a replica `count` devices of the best group. Returns like placement_search_place(). */
int placement_search_place_replica(struct placement_search *search, size_t count);

/* Does the same as placement_search_place_replica(), but as far from earlier replicas as possible
 * (spread_replicas.c). */
int placement_search_spread_replica(struct placement_search *search, size_t count);

#endif
