/* SPDX-License-Identifier: Apache-2.0
 *
 * Hides command lines: without a token, the page is for every user of the machine, so it has only
 * the names of programs, also for the leases of the user of berth web.
 */
#ifndef WEB_WEB_COMMANDS_H
#define WEB_WEB_COMMANDS_H

#include "history/history.h"
#include "view/follower.h"

/* Shortens all command lines that the follower has to the program's name. Call it after each
 * follower_step(). */
void web_commands_limit(struct follower *follower);

/* Does history_write_json() with the names of programs only. */
int web_commands_write_history(struct history *history, const struct history_query *query,
                               struct text *out, struct berth_error *error);

#endif
