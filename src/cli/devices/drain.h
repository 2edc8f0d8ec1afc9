/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes a device for drain and undrain.
 */
#ifndef CLI_DEVICES_DRAIN_H
#define CLI_DEVICES_DRAIN_H

#include "view/pool_view.h"
#include "view/user_names.h"

/* Appends the state of a device: "nvidia3: out of service once lease 12 (alice) ends\n". A failed
 * allocation is recorded in `out`. */
void drain_describe(const struct pool_view *view, struct device_id id, struct user_names *users,
                    struct text *out);

#endif
