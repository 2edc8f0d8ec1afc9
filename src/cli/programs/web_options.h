/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of berth web, for berth-web, which runs it.
 */
#ifndef CLI_PROGRAMS_WEB_OPTIONS_H
#define CLI_PROGRAMS_WEB_OPTIONS_H

#include "base/string_list.h"
#include "spec/option.h"

struct web_options {
    const char *listen; /* NULL: the usual address */
    const char *token;
    struct string_list hosts;
    const char *inventory;
    const char *job_mapping;
};

extern const struct option_set web_option_set;

#endif
