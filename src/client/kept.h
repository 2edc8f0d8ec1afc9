/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims without a callback: each has a record here from its start until its outcome is collected.
 * Records lie in chunks that never move; a ticket carries the number of its record, so that it is
 * found at once, and its id, so that a record that has a new tenant is not mistaken.
 */
#ifndef CLIENT_KEPT_H
#define CLIENT_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/vector.h"

struct waiter;

struct kept {
    struct list_link in_order; /* of outcomes; linked while there is one */
    uint64_t ticket;           /* 0: the record is free */
    uint64_t lease;
    union {
        struct waiter *waiters; /* who waits for the outcome, while there is none */
        struct kept *next_free; /* while the record is free */
    };
    int32_t code;
    uint32_t number;
};

struct kept_list {
    struct list outcomes; /* oldest first */
    struct kept *free;
    struct {
        VECTOR_OF(struct kept *);
    } chunks;
    int descriptor; /* an eventfd that is readable while there is an outcome; -1: none yet */
};

void kept_init(struct kept_list *list);
void kept_finish(struct kept_list *list);

/* A record without ticket and waiters; NULL: out of memory. */
struct kept *kept_take(struct kept_list *list);
void kept_give_back(struct kept_list *list, struct kept *kept);

/* The record with this number, if its ticket is `ticket`; else NULL. */
struct kept *kept_find(const struct kept_list *list, uint32_t number, uint64_t ticket);

/* The record has its outcome from now on. */
void kept_settle(struct kept_list *list, struct kept *kept, int code, uint64_t lease);

/* Takes the outcome out of the order and frees the record. */
void kept_collect(struct kept_list *list, struct kept *kept);

#endif
