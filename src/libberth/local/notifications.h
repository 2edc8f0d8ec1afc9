/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine decided and somebody is still to learn: callbacks, once the lock is given back,
 * and who collects outcomes by ticket. The engine decides in the middle of a release, which must
 * not fail, so the room for what it may decide is made before: when a claim begins to wait.
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

/* What is to be said. */
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
    struct notification *next; /* of those to tell, or the spare ones */
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
    struct id_map tickets; /* of those */
    int descriptor;        /* an eventfd that is readable while one is kept; -1: none yet */
};

/* Returns 0 or BERTH_ERROR_MEMORY; to be finished in either case. */
int notifications_init(struct notification_queue *queue);
void notifications_finish(struct notification_queue *queue);

/* Makes sure of `wanted` spare ones. Returns 0 or BERTH_ERROR_MEMORY. */
int notifications_reserve(struct notification_queue *queue, size_t wanted);

/* Puts a copy among those to tell, or the kept outcomes. They take a spare one; without any they
 * allocate, and drop the news when there is no memory, which notifications_reserve is there to
 * prevent. */
void notifications_append(struct notification_queue *queue, const struct message *message);
void notifications_keep_outcome(struct notification_queue *queue, const struct message *message);

/* Moves up to `most` of those to tell to ret_messages. Returns how many. */
size_t notifications_dequeue(struct notification_queue *queue, struct message *ret_messages,
                             size_t max);

/* The kept outcome of a ticket, the oldest kept one; NULL: none. */
struct notification *notifications_find_outcome(const struct notification_queue *queue,
                                                uint64_t ticket);
struct notification *notifications_oldest_outcome(const struct notification_queue *queue);

/* The outcome was collected: it is spare now. */
void notifications_collect_outcome(struct notification_queue *queue,
                                   struct notification *notification);

#endif
