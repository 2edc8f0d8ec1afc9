/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a placement: what the search keeps, and its words. Only for placement*.c.
 */
#ifndef ENGINE_PLACEMENT_SEARCH_H
#define ENGINE_PLACEMENT_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/filter.h"
#include "engine/placement.h"

/* One for each vendor. */
enum { SEARCH_GROUPS = VENDOR_DRI + 1 };

struct search {
    const struct placement_question *question;
    size_t device_count;
    size_t least;                   /* devices of each replica; what "all" means is counted */
    size_t most;                    /* the same, as far as they could ever be here */
    size_t counts[FILTER_VERDICTS]; /* devices by verdict */
    uint32_t *tenants;              /* by slot: claims an empty device has room for */
    uint32_t *room;                 /* by slot: what is left of that in this attempt */
    struct bitset possible;         /* might do some day */
    struct bitset available;        /* do now */
    struct bitset avoided;
    struct bitset groups[SEARCH_GROUPS]; /* devices that still have room in this attempt */
    size_t order[SEARCH_GROUPS];         /* the groups of this attempt, lowest slots first */
    size_t group_count;
    struct bitset must_left; /* required devices that no replica has yet */
    struct bitset candidates;
    struct bitset plain; /* candidates that are not avoided */
    struct bitset required;
    struct bitset chosen;
    struct placement *placement; /* the answer, in which slots and sizes grow */
};

/* Prepares a search that fills in `placement`, which the caller finishes. Returns 0 or
 * BERTH_ERROR_MEMORY; search_finish is to be called in both cases. */
int search_init(struct search *search, const struct placement_question *question,
                struct placement *placement);
void search_finish(struct search *search);

/* Judges every device once: fills in counts, tenants, avoided, possible and available. */
void search_judge(struct search *search);

/* Begins to place replicas on the devices in `from`, all of them empty. */
void search_start(struct search *search, const struct bitset *from);

/* Forgets what was placed. */
void search_forget(struct search *search);

/* Makes `candidates` the devices of the group that have room, `plain` those of them that are not
 * avoided and `required` those that are still required. Returns how many candidates there are. */
size_t search_gather(struct search *search, size_t group);

/* The group of a device: its vendor, or always the first where vendors may mix. */
size_t search_group(const struct search *search, size_t slot);

/* How many claims fit on these devices when they are empty. */
size_t search_room(const struct search *search, const struct bitset *from);

/* Whether each replica is a claim of its own. */
bool search_is_best_effort(const struct search *search);

/* Appends the reasons to the answer's `why`. */
void search_describe(const struct search *search);

#endif
