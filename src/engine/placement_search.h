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
    struct bitset must_left; /* required devices that no replica has yet */
    struct bitset candidates;
    struct bitset plain; /* candidates that are not avoided */
    struct bitset required;
    struct bitset chosen;
    struct placement *placement; /* the answer, in which slots and sizes grow */
};

/* For walking over the groups in `from`, each once, in the order of their lowest slots: returns the
 * next leader at or above `slot` whose vendor is not yet in *tried, and adds it; the device count
 * at the end. */
size_t search_next_group(const struct search *search, const struct bitset *from, size_t slot,
                         unsigned *tried);

#define for_each_group(leader, search, from)                                                      \
    for (unsigned tried = 0, more = 1; more; more = 0)                                            \
        for (size_t leader = search_next_group((search), (from), bitset_next((from), 0), &tried); \
             (leader) < (search)->device_count;                                                   \
             leader = search_next_group((search), (from), leader, &tried))

/* How many claims fit on these devices when they are empty. */
size_t search_room(const struct search *search, const struct bitset *from);

/* Whether each replica is a claim of its own. */
bool search_is_best_effort(const struct search *search);

/* Appends the reasons to the answer's `why`. */
void search_describe(const struct search *search);

#endif
