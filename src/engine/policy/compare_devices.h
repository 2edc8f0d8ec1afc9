/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons of single devices. The policies themselves are declared in policies.h.
 */
#ifndef ENGINE_POLICY_COMPARE_DEVICES_H
#define ENGINE_POLICY_COMPARE_DEVICES_H

#include "model/policy.h"

/* Returns a negative number if slot `one` has fewer leases than slot `other`, a positive number if
 * it has more, and 0 if they have the same number. */
int compare_devices_tenants(const struct policy_question *question, size_t one, size_t other);

#endif
