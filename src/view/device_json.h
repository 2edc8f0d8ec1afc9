/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a device as JSON.
 */
#ifndef VIEW_DEVICE_JSON_H
#define VIEW_DEVICE_JSON_H

#include <stdbool.h>

#include "base/optional.h"
#include "base/system/user_names.h"
#include "base/text/json.h"
#include "model/machine/device.h"

/* Writes the members of one device of the berth.devices/1 document into an object. `pool_says`: the
 * facts about processes come from a pool. The text remembers a failed allocation. */
void device_json_write_members(struct json *json, const struct device *device,
                               struct optional_number slot, bool pool_says,
                               struct user_names *users);

/* The decimals of figures in thousandths. */
enum { DEVICE_JSON_DECIMALS = 3 };

/* Writes one member; an unknown figure is null. */
void device_json_write_figure(struct json *json, const char *key, const struct figure *figure,
                              unsigned decimals);

#endif
