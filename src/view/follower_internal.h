/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of a follower do for each other.
 */
#ifndef VIEW_FOLLOWER_INTERNAL_H
#define VIEW_FOLLOWER_INTERNAL_H

#include "view/follower.h"

#define SECTION_BIT(section) (1U << (section))
#define ALL_SECTIONS                                                        \
    (SECTION_BIT(WIRE_SECTION_DEVICES) | SECTION_BIT(WIRE_SECTION_LEASES) | \
     SECTION_BIT(WIRE_SECTION_QUEUE))

/* follow.c: what is asked. */

/* The sections that are kept up to date. */
uint32_t follow_sections_wanted(const struct follower *follower);
/* The least time from one news to the next: what was wanted, but so much that looking is a small
 * part of it, as a long queue takes the daemon long to tell; but for those who must not miss what
 * has ended. */
int64_t follow_pace(const struct follower *follower);
/* Asks for news from what is known on. */
int follow_ask(struct follower *follower, struct berth_error *error);
/* Asks for a page of the look that is under way. */
int follow_ask_look(struct follower *follower, uint32_t section, uint64_t after,
                    struct berth_error *error);
/* Begins to look at what is due, unless a look is under way. */
int follow_look_at_due(struct follower *follower, struct berth_error *error);

/* follow_take.c: what is answered. */

/* The sections that news are about. A lease changes what its devices are about, and who waits for
 * them. */
uint32_t follow_sections_of(uint32_t kinds);
/* Takes in a message. Returns the news that can be told now, or an error. */
int follow_take(struct follower *follower, struct wire_message *message, struct berth_error *error);

#endif
