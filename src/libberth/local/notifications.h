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

enum news_kind {
    NEWS_OUTCOME, /* of a claim that did not block */
    NEWS_TAKE_BACK,
    NEWS_FORCE,
    NEWS_EXPIRED,
};

struct target;

/* What is to be said. */
struct message {
    enum news_kind kind;
    int code;
    uint64_t ticket;
    uint64_t lease;
    struct target *target;
    void *data; /* the program's */
};

struct news {
    struct message message;
    struct news *next;        /* of those to tell, or the spare ones */
    struct id_link by_ticket; /* of a kept outcome */
    struct list_link in_kept;
};

struct news_box {
    struct news *to_tell; /* oldest first */
    struct news **to_tell_end;
    struct news *spare;
    size_t spare_count;
    struct list kept; /* outcomes to be collected, oldest first */
    size_t kept_count;
    struct id_map tickets; /* of those */
    int descriptor;        /* an eventfd that is readable while one is kept; -1: none yet */
};

/* Returns 0 or BERTH_ERROR_MEMORY; to be finished in either case. */
int news_init(struct news_box *box);
void news_finish(struct news_box *box);

/* Makes sure of `wanted` spare ones. Returns 0 or BERTH_ERROR_MEMORY. */
int news_reserve(struct news_box *box, size_t wanted);

/* Puts a copy among those to tell, or the kept outcomes. They take a spare one; without any they
 * allocate, and drop the news when there is no memory, which news_reserve is there to prevent. */
void news_tell(struct news_box *box, const struct message *message);
void news_keep(struct news_box *box, const struct message *message);

/* Moves up to `most` of those to tell to ret_messages. Returns how many. */
size_t news_take(struct news_box *box, struct message *ret_messages, size_t max);

/* The kept outcome of a ticket, the oldest kept one; NULL: none. */
struct news *news_find(const struct news_box *box, uint64_t ticket);
struct news *news_oldest(const struct news_box *box);

/* The outcome was collected: it is spare now. */
void news_collect(struct news_box *box, struct news *news);

#endif
