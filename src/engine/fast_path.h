/* SPDX-License-Identifier: Apache-2.0
 *
 * The shortest claim and release: nobody waits, any one slot does, nobody listens, nothing is to be
 * counted. Inline, for a door whose own part is so small that even the call would be felt; it gives
 * the engine's inside away, so every other caller uses engine_try and engine_release, which begin
 * with these.
 */
#ifndef ENGINE_FAST_PATH_H
#define ENGINE_FAST_PATH_H

#include "engine/grant.h"

/* engine_try as far as there is nothing to decide. Returns whether it was granted; false changes
 * nothing and says nothing about what engine_try would do. */
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

/* engine_release as far as there is nothing to do but to give one slot back. Returns whether that
 * was so; false changes nothing. */
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
