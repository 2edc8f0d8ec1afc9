/* SPDX-License-Identifier: Apache-2.0
 *
 * The server-sent events of the page. Each is a name and one line of JSON; docs/WEB.md describes
 * them. Pure, except for the lookup of user names. The text remembers a failed allocation.
 */
#ifndef WEB_EVENTS_H
#define WEB_EVENTS_H

#include <stdint.h>

#include "base/system/user_names.h"
#include "base/text/text.h"
#include "view/follower.h"
#include "view/load_history.h"
#include "view/pool_view.h"

/* Maximum number of claims in one event. */
#define EVENTS_CLAIMS_MAX 500

/* Appends "hello": the whole pool, and the recent utilization of its devices. */
void events_write_hello(const struct pool_view *view, const struct load_history *recent,
                        enum follower_state state, struct user_names *users, struct text *out);

/* Appends "load": the load of the devices. */
void events_write_load(const struct pool_view *view, struct text *out);

/* Appends "devices": the devices with all facts, and the problems. */
void events_write_devices(const struct pool_view *view, struct user_names *users, struct text *out);

/* Appends "lease" for a current lease; `what` is "granted" or "changed". */
void events_write_lease(const char *what, const struct lease_info *lease, struct user_names *users,
                        struct text *out);
/* Appends "lease" for a lease that ended. */
void events_write_ended(const struct ended_lease *ended, struct user_names *users,
                        struct text *out);

/* Appends "queue": the first claims. */
void events_write_queue(const struct pool_view *view, struct user_names *users, struct text *out);

/* Appends "state": the connection to the daemon. `reason` may be NULL. */
void events_write_state(enum follower_state state, int64_t since, const char *reason,
                        struct text *out);

/* Appends "tick": the time. */
void events_write_tick(int64_t now, struct text *out);

#endif
