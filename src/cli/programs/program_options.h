/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of verbs that are separate programs: berth daemon, berth top and berth web. The
 * tables are part of berth, because its help and its completion use them. A member is NULL or
 * unknown if the option was not given.
 */
#ifndef CLI_PROGRAMS_PROGRAM_OPTIONS_H
#define CLI_PROGRAMS_PROGRAM_OPTIONS_H

#include "base/optional.h"
#include "base/string_list.h"
#include "spec/option.h"
#include "view/columns.h"

#define MACHINE_SOCKET "/run/berth/berth.sock"

struct daemon_options {
    const char *socket;
    const char *own;
    const char *inventory;
    const char *configuration;
    const char *log;
    const char *user;
    struct optional_number idle; /* nanoseconds */
    bool check;
};
extern const struct option_set daemon_option_set;

struct top_options {
    const char *inventory;
    enum view_column column;
    const char *filter;
    struct optional_number interval; /* nanoseconds */
};
extern const struct option_set top_option_set;

struct web_options {
    const char *listen;
    const char *token;
    struct string_list hosts; /* the program finishes it */
    const char *inventory;
    const char *job_mapping;
};
extern const struct option_set web_option_set;

#endif
