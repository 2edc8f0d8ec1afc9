/* SPDX-License-Identifier: Apache-2.0
 *
 * How the rules of the configuration reach the engine.
 */
#ifndef DAEMON_RULES_H
#define DAEMON_RULES_H

#include "daemon/pool.h"

/* Tells the engine the limits and devices of these rules, which become the pool's: pool->rules are
 * those that it was told before. The configuration is empty afterwards. Fails with
 * BERTH_ERROR_MEMORY, with as much of it done as could be. */
int rules_take(struct pool *pool, struct configuration *configuration, struct berth_error *error);

/* Somebody claims: the limit of each user is this user's, too. Fails with BERTH_ERROR_MEMORY. */
int rules_limit_user(struct pool *pool, uint32_t uid, struct berth_error *error);

/* A device has come: whether it is reserved or preferred. Fails with BERTH_ERROR_MEMORY. */
int rules_apply_to_slot(struct pool *pool, uint32_t slot, struct berth_error *error);

#endif
