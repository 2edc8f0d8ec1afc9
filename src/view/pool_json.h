/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a pool view as JSON: the berth.status/1 document and its parts, each of which is one JSON
 * value. The text remembers a failed allocation.
 */
#ifndef VIEW_POOL_JSON_H
#define VIEW_POOL_JSON_H

#include "base/system/user_names.h"
#include "base/text/json.h"
#include "view/pool_view.h"

/* Appends the whole document. */
void pool_json_write(const struct pool_view *view, struct user_names *users,
                     enum json_layout layout, struct text *out);

/* Writes the document's members except the schema: "pool", "devices", "leases", "queue",
 * "problems". */
void pool_json_write_members(struct json *json, const struct pool_view *view,
                             struct user_names *users);

/* Write the array of one of these members. */
void pool_json_write_devices(struct json *json, const struct pool_view *view,
                             struct user_names *users);
void pool_json_write_queue(struct json *json, const struct pool_view *view,
                           struct user_names *users);
void pool_json_write_problems(struct json *json, const struct pool_view *view);

/* Writes one lease as an object. */
void pool_json_write_lease(struct json *json, const struct lease_info *lease,
                           struct user_names *users);

#endif
