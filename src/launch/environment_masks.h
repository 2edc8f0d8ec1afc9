/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets the masks of a lease, such as CUDA_VISIBLE_DEVICES. One table describes all vendors.
 */
#ifndef LAUNCH_ENVIRONMENT_MASKS_H
#define LAUNCH_ENVIRONMENT_MASKS_H

#include <berth/error.h>

#include "launch/environment.h"
#include "launch/environment_changes.h"

/* Sets the masks so that the command sees exactly the lease's devices; without a lease
 * (facts->lease is 0) it sees none. Reads the masks of `inherited` (ended by NULL) for the
 * numbering of tiles. Fails as launch_environment does. */
int environment_masks_set(const struct launch_facts *facts, char *const *inherited,
                          struct environment_changes *changes, struct berth_error *error);

#endif
