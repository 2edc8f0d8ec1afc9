/* SPDX-License-Identifier: Apache-2.0
 *
 * The reason why a claim waits, with the names of users and in local time. The engine knows only
 * user ids and UTC.
 */
#ifndef VIEW_REASON_TEXT_H
#define VIEW_REASON_TEXT_H

#include "base/system/user_names.h"
#include "base/text/text.h"
#include "model/pool_info.h"

/* Appends `reason`, but replaces each "user 1000" by the user's name, and the UTC time in each
 * "until 2026-01-02T03:04Z" by the local time, such as "until 23:59". A user without a name stays
 * as it is. A name may contain any bytes (see user_names_find). `out` remembers a failed
 * allocation. */
void reason_text_append(struct text *out, const char *reason, struct user_names *users);

/* Appends the reason why a claim waits, in the same way; nothing if it is unknown. */
void reason_text_append_claim(struct text *out, const struct claim_info *claim,
                              struct user_names *users);

#endif
