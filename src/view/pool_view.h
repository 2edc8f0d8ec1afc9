/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole look at a pool: its devices, leases and queue, as they were when it was taken.
 */
#ifndef VIEW_POOL_VIEW_H
#define VIEW_POOL_VIEW_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "client/session.h"
#include "wire/wire.h"

/* More pages than any pool fills: a daemon that sends more is not one of ours. */
#define POOL_VIEW_PAGES_MAX 4096
/* More devices in all leases, counted once for each, than any pool has. */
#define POOL_VIEW_USES_MAX (1024 * 1024)

/* A device under a lease. */
struct pool_use {
    size_t slot;
    size_t lease;    /* index into look.leases */
    uint32_t number; /* which device of that lease, from 0 */
};

struct pool_view {
    struct wire_message about;    /* WIRE_POOL: what pool it is */
    struct wire_message snapshot; /* all pages as one: capacity, pending, time, slots, leases,
                                 claims, problems */
    struct {
        VECTOR_OF(struct pool_use); /* by slot, then by lease */
    } uses;
};

/* Takes one. Every slot has a device. The pages come one after the other, so that a lease may be
 * there whose device reads as free, and the other way round. The caller finishes *ret_view, which
 * is untouched on failure. Fails with BERTH_ERROR_IO when the daemon is gone (session_reconnect
 * helps) or does not answer within 10 s, _INVALID when it is the pool of another inventory than the
 * address wants, _SYNTAX when it does not make sense, _LIMIT when it does not end, or _MEMORY. */
int pool_view_fetch(struct session *session, struct pool_view *ret_view, struct berth_error *error);

/* The same for those who have no time: with BERTH_ERROR_IO after so many nanoseconds in all. */
int pool_view_fetch_within(struct session *session, int64_t time, struct pool_view *ret_view,
                           struct berth_error *error);

/* As pool_view_fetch, dialling again while the daemon goes away in the midst, a few times. */
int pool_view_fetch_retrying(struct session *session, struct pool_view *ret_view,
                             struct berth_error *error);

void pool_view_finish(struct pool_view *view);

/* Asks one thing and waits for what is said about it, at most 10 s; fails as pool_view_fetch, and
 * with what a refusal says. The caller finishes *ret_answer. */
int pool_view_request(struct session *session, struct wire_message *question, enum wire_type wanted,
                      struct wire_message *ret_answer, struct berth_error *error);

/* Fills in the uses of a view whose look is complete. For tests, too. */
int pool_view_index(struct pool_view *view, struct berth_error *error);

/* Where in a look a page begins, and how many there were before it. */
struct pool_view_position {
    uint32_t section;
    uint64_t after;
    size_t pages;
};

/* Adds the items of a page to the look; the page keeps what was not added. Returns whether another
 * page follows, whose place *place is then. Fails with BERTH_ERROR_SYNTAX, also when that page was
 * there already, _LIMIT when there are too many, or _MEMORY. */
int pool_view_add_page(struct pool_view *view, struct wire_message *page,
                       struct pool_view_position *position, struct berth_error *error);

/* Fails with BERTH_ERROR_INVALID when the pool that was found is not the one of this inventory;
 * NULL: any is right. */
int pool_view_check_inventory(const char *wanted, const char *found, struct berth_error *error);

/* The first use of a slot; the count of uses when it has none. */
size_t pool_view_first_use(const struct pool_view *view, size_t slot);

#endif
