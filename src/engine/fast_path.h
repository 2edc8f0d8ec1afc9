/* SPDX-License-Identifier: Apache-2.0
 *
 * The shortest claim and release, for the common case: no claim waits, the request needs any one
 * slot, its leases need nothing else, and no event is wanted. Inline, for libberth's local pool,
 * where even a function call would be noticeable. This header exposes the engine's internals. Every
 * other caller uses engine_try() and engine_release(), which try the fast path first.
 */
#ifndef ENGINE_FAST_PATH_H
#define ENGINE_FAST_PATH_H

#include "engine/grant.h"

/* Does the same as engine_try() if there is nothing to decide. Returns whether the claim was
 * granted. If not, nothing is changed, and engine_try() may still succeed. */
ALWAYS_INLINE bool fast_path_try(struct engine *engine, struct engine_request *request,
                                 uint64_t *ret_lease)
{
    uint32_t slot;

    if (!request->fast_path || request->scope->lanes.count > 0 ||
        lowest_set_is_empty(&request->scope->empty) || engine->spare_leases == NULL ||
        engine->notifies_at_once)
        return false;
    slot = (uint32_t)lowest_set_first(&request->scope->empty);
    *ret_lease = ++engine->last_id;
    grant_lease(request, engine->last_id, &slot, 1, 1, true);
    return true;
}

/* Does the same as engine_release() if the lease only has one slot to give back. Returns whether it
 * did. If not, nothing is changed. */
ALWAYS_INLINE bool fast_path_release(struct engine *engine, uint64_t lease)
{
    struct lease *held = engine_find_lease(engine, lease);

    if (held == NULL || !held->request->fast_path || held->touched != 0 ||
        held->request->scope->lanes.count > 0 || engine_wants_event(engine, EVENT_RELEASED))
        return false;
    grant_remove_lease(held, true);
    return true;
}

#endif
