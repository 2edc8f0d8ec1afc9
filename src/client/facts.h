/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_FACTS_H
#define CLIENT_FACTS_H

#include <berth/berth.h>

#include "engine/engine.h"

/* What is known of a lease's device `number`. With the lock. */
void facts_lease_device(const struct berth_pool *pool, const struct lease_view *view, size_t number,
                        struct berth_lease_device *ret_device);

#endif
