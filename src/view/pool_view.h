/* SPDX-License-Identifier: Apache-2.0
 *
 * A snapshot of a pool: its devices, leases and queue at one moment.
 */
#ifndef VIEW_POOL_VIEW_H
#define VIEW_POOL_VIEW_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/pool_info.h"

/* The maximum sum of the devices of all leases. No pool has more. */
#define POOL_VIEW_USES_MAX (1024 * 1024)

/* A device under a lease. */
struct pool_use {
    size_t slot;
    size_t lease;    /* index into snapshot.leases */
    uint32_t number; /* index into the lease's devices */
};

struct pool_view {
    struct pool_about about;
    struct pool_snapshot snapshot;
    struct {
        VECTOR_OF(struct pool_use); /* by slot, then by lease */
    } uses;
};

void pool_view_finish(struct pool_view *view);

/* Fills in the uses of a view whose snapshot is complete. Tests call it too. */
int pool_view_index(struct pool_view *view, struct berth_error *error);

/* Moves the items of a page to the view's snapshot; on failure the page keeps the rest. Fails with
 * BERTH_ERROR_SYNTAX (a slot without a device) or _MEMORY. */
int pool_view_add_page(struct pool_view *view, struct pool_snapshot *page,
                       struct berth_error *error);

/* Fails with BERTH_ERROR_INVALID when the pool's inventory, `found`, is not `wanted`. When `wanted`
 * is NULL, any pool is accepted. */
int pool_view_check_inventory(const char *wanted, const char *found, struct berth_error *error);

/* Returns the index of the first use of a slot, or the count of uses when there is none. */
size_t pool_view_first_use(const struct pool_view *view, size_t slot);

#endif
