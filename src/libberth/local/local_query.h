/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBBERTH_LOCAL_LOCAL_QUERY_H
#define LIBBERTH_LOCAL_LOCAL_QUERY_H

#include <berth/berth.h>

#include "engine/engine.h"

/* Describes device `number` of a lease. Called with the lock. */
void local_query_lease_device(const struct berth_pool *pool, const struct lease_view *view,
                              size_t number, struct berth_lease_device *ret_device);

/* Fills in the constant facts of the `capacity` slots. */
void local_query_describe_slots(const struct berth_pool *pool, struct berth_slot *ret_slots);

#endif
