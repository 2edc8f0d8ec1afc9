/* SPDX-License-Identifier: Apache-2.0
 *
 * What a page is told, as server-sent events: each is a name and one line of JSON. docs/WEB.md has
 * them all. Pure, but for the names of users; a failed allocation is remembered by the text.
 */
#ifndef WEB_EVENTS_H
#define WEB_EVENTS_H

#include <stdint.h>

#include "base/text/text.h"
#include "view/follower.h"
#include "view/pool_view.h"
#include "view/user_names.h"
#include "web/recent_loads.h"

/* Of the queue in one event. */
#define EVENTS_CLAIMS_MAX 500

/* The whole pool: "hello". */
void events_write_hello(const struct pool_view *view, const struct recent_loads *recent,
                        enum follower_state state, struct user_names *users, struct text *out);

/* How busy the devices are: "load". */
void events_write_load(const struct pool_view *view, struct text *out);

/* Everything else of the devices: "devices". */
void events_write_devices(const struct pool_view *view, struct user_names *users, struct text *out);

/* Appends a text that differs only when "devices" would say something new: without the figures that
 * change all the time. */
void events_write_devices_facts(const struct pool_view *view, struct user_names *users,
                                struct text *out);

/* A lease that is there: "lease"; `what` is "granted" or "changed". */
void events_write_lease(const char *what, const struct lease_info *lease, struct user_names *users,
                        struct text *out);
/* One that is over. */
void events_write_ended(const struct ended_lease *ended, struct user_names *users,
                        struct text *out);

/* "queue". */
void events_write_queue(const struct pool_view *view, struct user_names *users, struct text *out);

/* How we stand with the daemon: "state". `reason` may be NULL. */
void events_write_state(enum follower_state state, int64_t since, const char *reason,
                        struct text *out);

/* "tick". */
void events_write_tick(int64_t now, struct text *out);

#endif
