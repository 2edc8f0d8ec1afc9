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
uint32_t follower_wanted_sections(const struct follower *follower);
/* The least time from one news to the next: what was wanted, but so much that looking is a small
 * part of it, as a long queue takes the daemon long to tell; but for those who must not miss what
 * has ended. */
int64_t follower_effective_interval(const struct follower *follower);
/* Asks for news from what is known on. */
int follower_subscribe(struct follower *follower, struct berth_error *error);
/* Asks for a page of the look that is under way. */
int follower_request_page(struct follower *follower, uint32_t section, uint64_t after,
                          struct berth_error *error);
/* Begins to look at what is due, unless a look is under way. */
int follower_start_snapshot(struct follower *follower, struct berth_error *error);

/* follower_handle_message.c: what is answered. */

/* The sections that news are about. A lease changes what its devices are about, and who waits for
 * them. */
uint32_t follower_sections_of_kinds(uint32_t kinds);
/* Takes in a message. Returns the news that can be told now, or an error. */
int follower_handle_message(struct follower *follower, struct wire_message *message,
                            struct berth_error *error);

#endif
