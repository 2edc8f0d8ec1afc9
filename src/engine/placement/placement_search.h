/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for devices: which of those that have room the replicas of a request get. The engine
 * and placement_find both place through it. It keeps its memory between searches.
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

/* Only the first part is the caller's to set; placement_search_init leaves the rest ready. */
struct placement_search {
    const struct machine *machine;
    const struct request *request;
    const struct policy *policy;
    const struct policy_slot *slots; /* what a pool knows; NULL: nothing */
    bool ranked;                     /* some of them have a rank */
    uint64_t affinity;
    const struct bitset *must;    /* slots that have to be among the chosen; NULL: none */
    const struct bitset *avoided; /* only if others will not do */
    const uint32_t *source;       /* by slot: such claims that it has room for */
    const uint32_t *node_source;  /* by node: the same; NULL: any number */
    size_t replicas;
    /* Only for policies that rate nodes. */
    const void *tables; /* of the policy */
    uint32_t share;     /* of each device that a replica takes */
    uint64_t draw;
    uint32_t (*left)(const struct placement_search *search,
                     size_t slot); /* of a slot in millionths, before
                            this attempt */
    const void *left_context;
    const struct host_usage *hosts; /* by node; NULL: nothing is taken */
    struct text *words;             /* gets why each replica has what it has; NULL: nobody asks */

    struct placement_groups groups;
    size_t size;             /* of all sets: at least the number of devices */
    uint32_t *room;          /* by slot: what is left of the source in this attempt */
    uint32_t *node_room;     /* by node */
    uint32_t *node_replicas; /* by node: replicas that this attempt put there */
    struct bitset free;      /* devices that still have room in this attempt */
    struct placement_search_group {
        size_t group;
        size_t lowest; /* slot that had room at first */
    } * order;         /* the groups of this attempt, lowest slots first */
    size_t group_count;
    size_t group_capacity;
    const struct placement_group
        *gathered;           /* the words that the next three sets may have members in */
    struct bitset must_left; /* required devices that no replica has yet */
    struct bitset candidates;
    struct bitset plain; /* candidates that are not avoided */
    struct bitset required;
    size_t plain_count; /* of the group when it was gathered */
    struct bitset chosen;
    struct bitset used;            /* devices that replicas of this attempt have */
    struct slot_list slots_chosen; /* the answer: of all replicas, one after the other */
    struct slot_list sizes;        /* how many slots each of them has */
    size_t rated;                  /* replicas whose devices were an offer */
    int64_t score;                 /* of their offers together */
    bool proven;                   /* each of them is the best there is */
};

/* Prepares a search over this machine, with sets of `size` slots. Returns 0 or BERTH_ERROR_MEMORY;
 * placement_search_finish is to be called in both cases. */
int placement_search_init(struct placement_search *search, const struct machine *machine,
                          size_t size);
void placement_search_finish(struct placement_search *search);

/* There is a device of this slot. Returns 0 or BERTH_ERROR_MEMORY. */
int placement_search_add_slot(struct placement_search *search, size_t slot);

/* Begins to place replicas on the devices in `from`. Returns 0 or BERTH_ERROR_MEMORY. */
int placement_search_start(struct placement_search *search, const struct bitset *from);

/* Forgets what was placed. */
void placement_search_reset(struct placement_search *search);

/* Makes `candidates` the devices of the group that have room, `plain` those of them that are not
 * avoided and `required` those that are still required. Returns how many candidates there are; 0
 * also when the group's node is full. */
size_t placement_search_gather_group(struct placement_search *search, size_t number);

/* The group of a device: its node and its vendor, or its node alone where vendors may mix. */
size_t placement_search_group(const struct placement_search *search, size_t slot);

/* The same by the request alone. */
bool placement_search_may_mix(const struct request *request);

/* Whether the policy rates this node. */
bool placement_search_is_rated(const struct placement_search *search, size_t node);

/* What the node offers for `count` of the gathered candidates. */
struct bid placement_search_rate_node(const struct placement_search *search, size_t node,
                                      size_t count, struct policy_offer *ret_offer);

/* How many claims fit on these devices. */
size_t placement_search_room(const struct placement_search *search, const struct bitset *from);

/* The size of the largest group in `from`, of equals that with the lowest slot, which comes back
 * too; 0 when `from` has no room; or BERTH_ERROR_MEMORY. */
int64_t placement_search_largest_group(struct placement_search *search, const struct bitset *from,
                                       size_t *ret_group);

/* The question that a policy is asked about the candidates. */
struct policy_question placement_search_question(const struct placement_search *search,
                                                 size_t count);

/* Gives a replica `count` of the candidates. Returns 1 or BERTH_ERROR_MEMORY. */
int placement_search_assign(struct placement_search *search, size_t count);

/* Places search->replicas replicas of `count` devices each on devices in `from`, all or nothing.
 * Finds a way whenever there is one. Returns 1, 0 when there are not enough, or
 * BERTH_ERROR_MEMORY. */
int placement_search_place(struct placement_search *search, const struct bitset *from,
                           size_t count);

/* The same with the largest count from `most` down to `least`. */
int placement_search_place_largest(struct placement_search *search, const struct bitset *from,
                                   size_t min, size_t max);

/* Finds how many devices a replica may get: bounded by what is here, so that a request for a
 * million devices is not counted down one by one. "all" is every device of the largest group; the
 * others have no room then (tenants becomes 0). `tenants` is the room on empty devices, and the
 * source afterwards. Returns 0 or BERTH_ERROR_MEMORY. */
int placement_search_bounds(struct placement_search *search, const struct bitset *possible,
                            uint32_t *tenants, size_t *ret_min, size_t *ret_max);

/* Whether one replica of this size could be placed on what the last search began with. */
bool placement_search_has_group(const struct placement_search *search, size_t count);

/* Whether all replicas could ever be placed on these devices, which placement_search_bounds has
 * just been asked about. Fewer devices are easier to find, but may be too few to hold the required
 * ones. Returns as placement_search_place; nothing is left placed. */
int placement_search_could_ever(struct placement_search *search, const struct bitset *possible,
                                size_t min, size_t max);

/* Gives the next replica `count` devices of the best group. Returns as placement_search_place. */
int placement_search_place_replica(struct placement_search *search, size_t count);

/* The same, as far from the replicas before it as the devices allow, emptier places first. */
int placement_search_spread_replica(struct placement_search *search, size_t count);

#endif
