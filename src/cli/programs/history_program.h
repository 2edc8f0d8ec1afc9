/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of berth-history.
 */
#ifndef CLI_PROGRAMS_HISTORY_PROGRAM_H
#define CLI_PROGRAMS_HISTORY_PROGRAM_H

#include "cli/programs/history_options.h"
#include "history/history.h"

/* How the answer is to look. */
enum past_form {
    PAST_TABLE,
    PAST_JSON,
    PAST_CSV,
};

/* `history` NULL: nothing was recorded yet. Each prints all, says on stderr what failed, and
 * returns the exit code. */
int past_list(struct history *history, const struct history_query *query, enum past_form form);
int past_report(struct history *history, const struct history_query *query, enum history_by by,
                enum past_form form);

/* Says on stderr what failed, as this verb. Returns the exit code. */
int past_fail(const char *verb, struct berth_error *error);

#endif
