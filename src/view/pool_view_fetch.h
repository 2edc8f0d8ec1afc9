/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetches snapshots and single answers from the daemon.
 */
#ifndef VIEW_POOL_VIEW_FETCH_H
#define VIEW_POOL_VIEW_FETCH_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "client/session.h"
#include "view/pool_view.h"
#include "wire/wire.h"

/* The maximum number of pages. No berthd sends more. */
#define POOL_VIEW_PAGES_MAX 4096

/* Fetches a snapshot from the daemon. Every slot has a device. The pool may change between two
 * pages, so a lease may have a device whose state is free, and a leased device may have no lease.
 * The caller finishes *ret_view, which is untouched on failure. Fails with BERTH_ERROR_IO when the
 * daemon is gone (session_reconnect helps) or does not answer (session_receive), _INVALID when the
 * pool has another inventory than the address, _SYNTAX for an invalid answer, _LIMIT when there are
 * too many pages, or _MEMORY. */
int pool_view_fetch(struct session *session, struct pool_view *ret_view, struct berth_error *error);

/* Does the same, but fails with BERTH_ERROR_IO after `time` nanoseconds in total. */
int pool_view_fetch_within(struct session *session, int64_t time, struct pool_view *ret_view,
                           struct berth_error *error);

/* As pool_view_fetch, but reconnects and tries again a few times when the daemon goes away
 * meanwhile. */
int pool_view_fetch_retrying(struct session *session, struct pool_view *ret_view,
                             struct berth_error *error);

/* Sends a request and waits for its answer of type `wanted`. Fails as
 * pool_view_fetch, or with the error of a refusal. The caller finishes *ret_answer. */
int pool_view_fetch_answer(struct session *session, struct wire_message *question,
                           enum wire_type wanted, struct wire_message *ret_answer,
                           struct berth_error *error);

/* The start of a page in a snapshot. */
struct pool_view_position {
    uint32_t section;
    uint64_t after;
    size_t pages; /* number of pages before this one */
};

/* Moves *position to the page that follows this page. Returns whether there is one. Fails with
 * BERTH_ERROR_SYNTAX (the next page is not after this one) or _LIMIT (too many pages). */
int pool_view_fetch_advance(const struct wire_message *page, struct pool_view_position *position,
                            struct berth_error *error);

#endif
