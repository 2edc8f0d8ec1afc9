/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of berth history and berth report, and their output. One program, berth-history, runs
 * both verbs.
 */
#ifndef CLI_PROGRAMS_HISTORY_PROGRAM_H
#define CLI_PROGRAMS_HISTORY_PROGRAM_H

#include <stdbool.h>

#include "base/optional.h"
#include "cli/kept_commands.h"
#include "history/history.h"
#include "spec/option.h"

/* The options of both verbs. A member is NULL if the option was not given. */
struct history_filter_options {
    const char *user;
    const char *name;
    const char *device; /* an id */
    const char *since;
    const char *until;
    const char *inventory;
    const char *file;
    bool json;
    bool csv;
};
extern const struct option_set history_filter_option_set;

struct history_options {
    struct optional_number max;
};
extern const struct option_set history_option_set;

struct report_options {
    enum history_by by;
};
extern const struct option_set report_option_set;

enum history_form {
    HISTORY_FORM_TABLE,
    HISTORY_FORM_JSON,
    HISTORY_FORM_CSV,
};

/* Print the leases that match the query, or their sums. `history` may be NULL: no lease was
 * recorded yet. `kept` has command lines of the user's own leases, for which the history may have
 * only the program. Report failures on stderr. Return the exit code. */
int history_program_list(struct history *history, const struct history_query *query,
                         const struct kept_commands *kept, enum history_form form);
int history_program_report(struct history *history, const struct history_query *query,
                           enum history_by by, enum history_form form);

/* Reports the error of this verb on stderr. Returns the exit code. */
int history_program_fail(const char *verb, struct berth_error *error);

#endif
