/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of berth history and berth report, which are one program.
 */
#ifndef CLI_PROGRAMS_HISTORY_OPTIONS_H
#define CLI_PROGRAMS_HISTORY_OPTIONS_H

#include <stdbool.h>

#include "history/history.h"
#include "model/optional.h"
#include "spec/option.h"

/* What both take. */
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

#endif
