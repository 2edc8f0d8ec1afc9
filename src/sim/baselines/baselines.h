/* SPDX-License-Identifier: Apache-2.0
 *
 * The policies of the openb study (docs/PLACEMENT.md, "For comparison"). Only simulations offer
 * them, beside the policies of the engine.
 */
#ifndef SIM_BASELINES_BASELINES_H
#define SIM_BASELINES_BASELINES_H

#include <berth/error.h>

#include "model/policy.h"

extern const struct policy baseline_random;
extern const struct policy baseline_dotprod;
extern const struct policy baseline_clustering;
extern const struct policy baseline_packing;
extern const struct policy baseline_bestfit;
extern const struct policy baseline_fgd;

/* These six, ended by NULL. */
extern const struct policy *const baselines[];

/* Finds a policy by its name, among those of the engine and then among the baselines. Finds NULL if
 * `name` is NULL. Returns 0, or BERTH_ERROR_INVALID with a message that lists all names, or
 * BERTH_ERROR_MEMORY; on an error *ret_policy stays as it is. */
int baseline_find(const char *name, const struct policy **ret_policy, struct berth_error *error);

/* Fills in an offer by a score of the study; a higher score is better. */
void baseline_offer(uint64_t chosen, int64_t score, struct policy_offer *ret_offer);

#endif
