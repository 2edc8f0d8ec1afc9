/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of berth-history.
 */
#ifndef CLI_PROGRAMS_HISTORY_PROGRAM_H
#define CLI_PROGRAMS_HISTORY_PROGRAM_H

#include "cli/programs/history_options.h"
#include "history/history.h"

/* How the answer is to look. */
enum history_form {
    HISTORY_FORM_TABLE,
    HISTORY_FORM_JSON,
    HISTORY_FORM_CSV,
};

/* `history` NULL: nothing was recorded yet. Each prints all, says on stderr what failed, and
 * returns the exit code. */
int history_list_print(struct history *history, const struct history_query *query,
                       enum history_form form);
int history_totals_print(struct history *history, const struct history_query *query,
                         enum history_by by, enum history_form form);

/* Says on stderr what failed, as this verb. Returns the exit code. */
int main_fail_verb(const char *verb, struct berth_error *error);

#endif
