/* SPDX-License-Identifier: Apache-2.0
 *
 * A snapshot of a pool: its devices, leases and queue at one moment.
 */
#ifndef VIEW_POOL_VIEW_H
#define VIEW_POOL_VIEW_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "client/session.h"
#include "wire/wire.h"

/* The maximum number of pages. No berthd sends more. */
#define POOL_VIEW_PAGES_MAX 4096
/* The maximum sum of the devices of all leases. No pool has more. */
#define POOL_VIEW_USES_MAX (1024 * 1024)

/* A device under a lease. */
struct pool_use {
    size_t slot;
    size_t lease;    /* index into snapshot.leases */
    uint32_t number; /* index into the lease's devices */
};

struct pool_view {
    struct wire_message about;    /* WIRE_POOL */
    struct wire_message snapshot; /* all pages joined: capacity, pending, time, slots, leases,
                                     claims, problems */
    struct {
        VECTOR_OF(struct pool_use); /* by slot, then by lease */
    } uses;
};

/* Fetches a snapshot from the daemon. Every slot has a device. The pool may change between two
 * pages, so a lease may have a device whose state is free, and a leased device may have no lease.
 * The caller finishes *ret_view, which is untouched on failure. Fails with BERTH_ERROR_IO when the
 * daemon is gone (session_reconnect helps) or does not answer within 10 s, _INVALID when the pool
 * has another inventory than the address, _SYNTAX for an invalid answer, _LIMIT when there are too
 * many pages, or _MEMORY. */
int pool_view_fetch(struct session *session, struct pool_view *ret_view, struct berth_error *error);

/* The same, but fails with BERTH_ERROR_IO after `time` nanoseconds in total. */
int pool_view_fetch_within(struct session *session, int64_t time, struct pool_view *ret_view,
                           struct berth_error *error);

/* As pool_view_fetch, but reconnects and tries again a few times when the daemon goes away
 * meanwhile. */
int pool_view_fetch_retrying(struct session *session, struct pool_view *ret_view,
                             struct berth_error *error);

void pool_view_finish(struct pool_view *view);

/* Sends a request and waits for its answer of type `wanted`, at most 10 s. Fails as
 * pool_view_fetch, or with the error of a refusal. The caller finishes *ret_answer. */
int pool_view_request(struct session *session, struct wire_message *question, enum wire_type wanted,
                      struct wire_message *ret_answer, struct berth_error *error);

/* Fills in the uses of a view whose snapshot is complete. Tests call it too. */
int pool_view_index(struct pool_view *view, struct berth_error *error);

/* The start of a page in a snapshot. */
struct pool_view_position {
    uint32_t section;
    uint64_t after;
    size_t pages; /* number of pages before this one */
};

/* Moves the items of a page to the snapshot; on failure the page keeps the rest. Returns whether
 * another page follows, and moves *position to it. Fails with BERTH_ERROR_SYNTAX (also when that
 * page is not after this one), _LIMIT (too many pages) or _MEMORY. */
int pool_view_add_page(struct pool_view *view, struct wire_message *page,
                       struct pool_view_position *position, struct berth_error *error);

/* Fails with BERTH_ERROR_INVALID when the pool's inventory, `found`, is not `wanted`. When `wanted`
 * is NULL, any pool is accepted. */
int pool_view_check_inventory(const char *wanted, const char *found, struct berth_error *error);

/* Returns the index of the first use of a slot, or the count of uses when there is none. */
size_t pool_view_first_use(const struct pool_view *view, size_t slot);

#endif
