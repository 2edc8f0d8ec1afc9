/* SPDX-License-Identifier: Apache-2.0
 *
 * The reason why a claim waits, with the names of users and in local time. The engine knows users
 * by number only, and no time zone.
 */
#ifndef VIEW_REASON_TEXT_H
#define VIEW_REASON_TEXT_H

#include "base/text/text.h"
#include "view/user_names.h"

/* Appends `reason` with the name of a user in place of each "user 1000", and the local time, such
 * as "until 23:59", in place of each "until 2026-01-02T03:04Z". A user without a name stays as it
 * is. A name may hold anything, as user_names_find says. A failed allocation is remembered by
 * `out`. */
void reason_text_append(struct text *out, const char *reason, struct user_names *users);

#endif
