/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes snapshots of made-up pools. Their contents are allocated, as if a daemon had sent them.
 */
#ifndef TESTS_POOL_VIEWS_H
#define TESTS_POOL_VIEWS_H

#include "support/unit.h"

#include <string.h>

#include "base/text/quantity.h"
#include "view/pool_view.h"

/* 2026-11-16T12:00:00Z */
#define VIEW_NOW (INT64_C(1794830400) * DURATION_SECOND)

/* Returns a copy of a text, or NULL for NULL. */
static inline char *view_text(const char *text)
{
    char *copy = text == NULL ? NULL : strdup(text);

    assert_true(text == NULL || copy != NULL);
    return copy;
}

/* Returns a view of `count` equal devices, all free: nvidia0, nvidia1, ... */
static inline struct pool_view view_of(size_t count)
{
    struct pool_view view = {.snapshot = {.capacity = (uint32_t)count, .time = VIEW_NOW}};

    for (size_t i = 0; i < count; i++) {
        struct slot_info *slot = vector_append(&view.snapshot.slots);
        struct device *device = calloc(1, sizeof(*device));

        assert_true(slot != NULL && device != NULL);
        device->id = (struct device_id){VENDOR_NVIDIA, (uint32_t)i, DEVICE_NO_MIG};
        device->name = view_text("NVIDIA A100-SXM4-80GB");
        device->memory_total = optional_number_of(UINT64_C(80) << 30);
        slot->device = device;
    }
    return view;
}

/* Gives slots from..to-1 to one more lease and returns it. */
static inline struct lease_info *view_lease(struct pool_view *view, uint64_t id, size_t from,
                                            size_t to)
{
    struct lease_info *lease = vector_append(&view->snapshot.leases);

    assert_non_null(lease);
    *lease = (struct lease_info){
        .id = id,
        .uid = 4000000000,
        .pid = 77,
        .replicas = 1,
        .share = SHARE_WHOLE,
        .since = VIEW_NOW - 3 * DURATION_HOUR,
        .granted = VIEW_NOW - 2 * DURATION_HOUR - 10 * DURATION_MINUTE,
    };
    for (size_t slot = from; slot < to; slot++) {
        struct device_id *device = vector_append(&lease->devices);

        assert_non_null(device);
        *device = view->snapshot.slots.items[slot].device->id;
        view->snapshot.slots.items[slot].state = SLOT_STATE_LEASED;
        view->snapshot.slots.items[slot].tenants++;
    }
    return lease;
}

/* Adds a claim at the end of the queue and returns it. */
static inline struct claim_info *view_claim(struct pool_view *view, uint64_t id,
                                            const char *request, const char *why)
{
    struct claim_info *claim = vector_append(&view->snapshot.claims);

    assert_non_null(claim);
    *claim = (struct claim_info){
        .id = id,
        .uid = 4000000001,
        .pid = 78,
        .position = (uint32_t)view->snapshot.claims.count,
        .request = view_text(request),
        .why = view_text(why),
        .since = VIEW_NOW - 12 * DURATION_MINUTE,
    };
    view->snapshot.pending++;
    return claim;
}

#endif
