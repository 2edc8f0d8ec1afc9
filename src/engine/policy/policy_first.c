/* SPDX-License-Identifier: Apache-2.0
 *
 * first: the lowest slots, but what is to be avoided last.
 */
#include "engine/policy/policies.h"

const struct policy policy_first = {
    .name = "first",
    .summary = "the lowest slots",
};
