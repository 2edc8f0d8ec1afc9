/* SPDX-License-Identifier: Apache-2.0
 *
 * What callbacks are to be told once the lock is given back. The engine decides in the middle of a
 * release, which must not fail, so the room for what it may decide is made before: when a claim
 * with a callback begins to wait.
 */
#ifndef CLIENT_TOLD_H
#define CLIENT_TOLD_H

#include <berth/error.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum told_kind {
    TOLD_OUTCOME, /* of a claim with a callback */
    TOLD_TAKE_BACK,
    TOLD_FORCE,
    TOLD_EXPIRED,
};

struct target;

struct told {
    struct told *next;
    enum told_kind kind;
    int code;
    struct target *target;
    void *data; /* the program's */
    uint64_t ticket;
    uint64_t lease;
};

/* First in, first out, and the spare ones. */
struct told_queue {
    struct told *first;
    struct told **end; /* NULL: the queue was never used */
    struct told *spare;
    size_t spare_count;
    atomic_size_t count; /* in the queue; written under the lock */
};

/* Makes sure of `wanted` spare ones. Returns 0 or BERTH_ERROR_MEMORY. */
int told_reserve(struct told_queue *queue, size_t wanted);

/* Appends a copy. Takes a spare one; without any it allocates, and drops the news when there is no
 * memory, which told_reserve is there to prevent. */
void told_append(struct told_queue *queue, const struct told *news);

/* Moves up to `most` out of the queue. Returns how many. */
size_t told_take(struct told_queue *queue, struct told *ret_news, size_t most);

void told_finish(struct told_queue *queue);

#endif
