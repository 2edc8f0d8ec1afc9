/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBBERTH_LOCAL_CUSTOM_POLICY_H
#define LIBBERTH_LOCAL_CUSTOM_POLICY_H

#include "model/policy.h"

/* The program's own policy: `choose` of berth_pool_options. Its context is the pool. */
extern const struct policy custom_policy;

#endif
