/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBBERTH_LOCAL_LOCAL_QUERY_H
#define LIBBERTH_LOCAL_LOCAL_QUERY_H

#include <berth/berth.h>

#include "engine/engine.h"

/* What is known of a lease's device `number`. With the lock. */
void local_query_lease_device(const struct berth_pool *pool, const struct lease_view *view,
                              size_t number, struct berth_lease_device *ret_device);

/* What never changes of the slots; `capacity` of them. */
void local_query_describe_slots(const struct berth_pool *pool, struct berth_slot *ret_slots);

#endif
