/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at a pool for programs: the berth.status/1 document and its parts, each of which is one
 * JSON value. A failed allocation is remembered by the text that is written to.
 */
#ifndef VIEW_POOL_JSON_H
#define VIEW_POOL_JSON_H

#include "base/text/json.h"
#include "view/pool_view.h"
#include "view/user_names.h"

/* Appends the whole document. */
void pool_json_write(const struct pool_view *view, struct user_names *users,
                     enum json_layout layout, struct text *out);

/* What it has besides its schema: "pool", "devices", "leases", "queue", "problems". */
void pool_json_write_members(struct json *json, const struct pool_view *view,
                             struct user_names *users);

/* Some of these alone, arrays. */
void pool_json_write_devices(struct json *json, const struct pool_view *view,
                             struct user_names *users);
void pool_json_write_queue(struct json *json, const struct pool_view *view,
                           struct user_names *users);
void pool_json_write_problems(struct json *json, const struct pool_view *view);

/* One lease, an object. */
void pool_json_write_lease(struct json *json, const struct lease_info *lease,
                           struct user_names *users);

#endif
