/* SPDX-License-Identifier: Apache-2.0
 *
 * The masks that a lease sets, for all vendors by one table.
 */
#ifndef LAUNCH_ENVIRONMENT_MASKS_H
#define LAUNCH_ENVIRONMENT_MASKS_H

#include <berth/error.h>

#include "launch/environment.h"
#include "launch/environment_changes.h"

/* What the devices of the lease and the vendors of the host make of the masks of the environment
 * `inherited` (ended by NULL); without a lease (facts->lease is 0) all is hidden. Fails as
 * launch_environment. */
int environment_masks_set(const struct launch_facts *facts, char *const *inherited,
                          struct environment_changes *changes, struct berth_error *error);

#endif
