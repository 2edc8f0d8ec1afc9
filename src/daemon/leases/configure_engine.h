/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes the configuration's limits, reserved and preferred devices to the engine.
 */
#ifndef DAEMON_LEASES_CONFIGURE_ENGINE_H
#define DAEMON_LEASES_CONFIGURE_ENGINE_H

#include <berth/error.h>
#include <stdint.h>

struct configuration;
struct pool;

/* Applies the configuration's rules in the engine, in place of pool->rules, and moves them to
 * pool->rules. The configuration is empty afterwards. Fails with BERTH_ERROR_MEMORY after applying
 * as many rules as possible. */
int configure_engine_apply(struct pool *pool, struct configuration *configuration,
                           struct berth_error *error);

/* Applies the configuration's limit for each user to the user of a claim. Fails with
 * BERTH_ERROR_MEMORY. */
int configure_engine_limit_user(struct pool *pool, uint32_t uid, struct berth_error *error);
/* Does the same for the users of all jobs. Must be called after the limits have changed, before a
 * waiting claim is granted. */
int configure_engine_limit_all(struct pool *pool, struct berth_error *error);

/* Applies the rules for reserved and preferred devices to a slot. Fails with BERTH_ERROR_MEMORY. */
int configure_engine_slot(struct pool *pool, uint32_t slot, struct berth_error *error);

#endif
