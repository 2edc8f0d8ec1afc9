/* SPDX-License-Identifier: Apache-2.0
 *
 * A device for programs.
 */
#ifndef VIEW_DEVICE_JSON_H
#define VIEW_DEVICE_JSON_H

#include <stdbool.h>

#include "base/text/json.h"
#include "model/device.h"
#include "model/optional.h"
#include "view/user_names.h"

/* The members of one device in the berth.devices/1 document, within an object; `pool_says`: a pool
 * has said what it knows of the processes. A failed allocation is remembered by the text. */
void device_json_write_members(struct json *json, const struct device *device,
                               struct optional_number slot, bool pool_says,
                               struct user_names *users);

#endif
