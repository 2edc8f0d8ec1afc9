/* SPDX-License-Identifier: Apache-2.0
 *
 * One reader of a pool. Starts it, gives it queries, watches it while it works, and replaces it if
 * a process keeps it asleep.
 */
#ifndef DAEMON_PROCESSES_READER_SLOT_H
#define DAEMON_PROCESSES_READER_SLOT_H

#include <berth/error.h>
#include <stdint.h>

struct reader_query;
struct reader_slot;
struct timer;

/* The function of the slot's timer: starts the reader, or checks whether it makes progress. */
void reader_slot_is_due(struct timer *timer);

/* Sends a query of a user to the free reader. */
void reader_slot_send(struct reader_slot *slot, struct reader_query *query);

/* Returns how long the slot's query has waited, except the time that the reader waited for a
 * CPU. */
int64_t reader_slot_waited(const struct reader_slot *slot);

/* Handles the loss of a reader that no process has stalled. */
void reader_slot_lose(struct reader_slot *slot, const struct berth_error *error);

/* Gives the query back and starts another reader. */
void reader_slot_replace(struct reader_slot *slot);

void reader_slot_close(struct reader_slot *slot);

#endif
