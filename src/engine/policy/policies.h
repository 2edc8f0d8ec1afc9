/* SPDX-License-Identifier: Apache-2.0
 *
 * The placement policies there are.
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

/* Others have published these; they are here to be measured against. */
extern const struct policy policy_random;
extern const struct policy policy_dotprod;
extern const struct policy policy_clustering;
extern const struct policy policy_packing;
extern const struct policy policy_bestfit;
extern const struct policy policy_fgd;

/* All policies, ended by NULL. */
extern const struct policy *const policies[];

/* The policy of a request that names none. */
const struct policy *policy_default(const struct request *request);

/* The policy of this name; of none there is none: NULL. Fails with BERTH_ERROR_INVALID and a
 * message that lists the names; *ret_policy is untouched then. */
int policy_find(const char *name, const struct policy **ret_policy, struct berth_error *error);

#endif
