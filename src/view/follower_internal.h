/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that the files of a follower share.
 */
#ifndef VIEW_FOLLOWER_INTERNAL_H
#define VIEW_FOLLOWER_INTERNAL_H

#include "view/follower.h"

#define SECTION_BIT(section) (1U << (section))
#define ALL_SECTIONS                                                        \
    (SECTION_BIT(WIRE_SECTION_DEVICES) | SECTION_BIT(WIRE_SECTION_LEASES) | \
     SECTION_BIT(WIRE_SECTION_QUEUE))

/* follower.c: requests. */

/* Returns the sections that are kept up to date. */
uint32_t follower_wanted_sections(const struct follower *follower);
/* Returns the minimum time between two messages with news: the interval of the settings, but long
 * enough that taking snapshots, which is slow with a long queue, is a small part of the time. A
 * follower that keeps ended leases always uses the interval of the settings. */
int64_t follower_effective_interval(const struct follower *follower);
/* Subscribes to the changes after the last known one. */
int follower_subscribe(struct follower *follower, struct berth_error *error);
/* Requests a page of the current snapshot. */
int follower_request_page(struct follower *follower, uint32_t section, uint64_t after,
                          struct berth_error *error);
/* Starts a snapshot of the sections that are due, unless one is in progress. */
int follower_start_snapshot(struct follower *follower, struct berth_error *error);

/* follower_receive.c: answers. */

/* Returns the sections that news of these kinds concern. A lease also changes the states of its
 * devices, and the queue. */
uint32_t follower_sections_of_kinds(uint32_t kinds);
/* Handles a message. Returns the kinds of news that are complete now, or an error. */
int follower_handle_message(struct follower *follower, struct wire_message *message,
                            struct berth_error *error);

#endif
