/* SPDX-License-Identifier: Apache-2.0
 *
 * The placement policies (docs/PLACEMENT.md).
 */
#ifndef ENGINE_POLICY_POLICIES_H
#define ENGINE_POLICY_POLICIES_H

#include <berth/error.h>

#include "model/policy.h"
#include "model/request.h"

extern const struct policy policy_first;
extern const struct policy policy_round_robin;
extern const struct policy policy_least_loaded;
extern const struct policy policy_best_available;
extern const struct policy policy_best_compute;
extern const struct policy policy_pack;
extern const struct policy policy_spread;
extern const struct policy policy_topology;
extern const struct policy policy_frag;
extern const struct policy policy_weighted;

/* All of these, ended by NULL. */
extern const struct policy *const policies[];

/* Returns the policy for a request that names none. */
const struct policy *policy_default(const struct request *request);

/* Finds a policy by its name. Finds NULL if `name` is NULL. Returns 0, or BERTH_ERROR_INVALID with
 * a message that lists the names, or BERTH_ERROR_MEMORY; on an error *ret_policy stays as it is. */
int policy_find(const char *name, const struct policy **ret_policy, struct berth_error *error);

#endif
