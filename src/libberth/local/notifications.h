/* SPDX-License-Identifier: Apache-2.0
 *
 * Decisions of the engine that must still be delivered: to callbacks, after the lock is released,
 * and to threads that collect outcomes by ticket. The engine decides in the middle of a release,
 * which must not fail. So room for its decisions is reserved when a claim begins to wait.
 * Everything here is done with the pool's lock.
 */
#ifndef LIBBERTH_LOCAL_NOTIFICATIONS_H
#define LIBBERTH_LOCAL_NOTIFICATIONS_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id_map.h"
#include "base/list.h"

enum notification_kind {
    NOTIFICATION_OUTCOME, /* of a claim that did not block */
    NOTIFICATION_TAKE_BACK,
    NOTIFICATION_FORCE,
    NOTIFICATION_EXPIRED,
};

struct target;

/* The content of a notification. */
struct message {
    enum notification_kind kind;
    int code;
    uint64_t ticket;
    uint64_t lease;
    struct target *target;
    void *data; /* the program's */
};

struct notification {
    struct message message;
    struct notification *next; /* in the queue, or among the spare ones */
    struct id_link by_ticket;  /* of a kept outcome */
    struct list_link in_kept;
};

struct notification_queue {
    struct notification *pending; /* oldest first */
    struct notification **pending_end;
    struct notification *spare;
    size_t spare_count;
    struct list kept; /* outcomes to be collected, oldest first */
    size_t kept_count;
    struct id_map tickets; /* the kept outcomes, by ticket */
    int descriptor;        /* an eventfd that is readable while an outcome is kept; -1: none yet */
};

/* Returns 0 or BERTH_ERROR_MEMORY; call notifications_finish in either case. */
int notifications_init(struct notification_queue *queue);
void notifications_finish(struct notification_queue *queue);

/* Ensures that there are `wanted` spare notifications. Returns 0 or BERTH_ERROR_MEMORY. */
int notifications_reserve(struct notification_queue *queue, size_t wanted);

/* Adds a copy to the queue, or to the kept outcomes. They use a spare notification, else allocate
 * one. Without memory the notification is lost; notifications_reserve prevents that. */
void notifications_append(struct notification_queue *queue, const struct message *message);
void notifications_keep_outcome(struct notification_queue *queue, const struct message *message);

/* Moves up to `max` queued notifications to ret_messages. Returns their number. */
size_t notifications_dequeue(struct notification_queue *queue, struct message *ret_messages,
                             size_t max);

/* Returns the kept outcome of a ticket, or the oldest kept one; NULL: none. */
struct notification *notifications_find_outcome(const struct notification_queue *queue,
                                                uint64_t ticket);
struct notification *notifications_oldest_outcome(const struct notification_queue *queue);

/* Removes a collected outcome, which becomes a spare notification. */
void notifications_collect_outcome(struct notification_queue *queue,
                                   struct notification *notification);

#endif
