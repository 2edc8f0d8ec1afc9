/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of 'berth top', which is a program of its own.
 */
#ifndef CLI_PROGRAMS_TOP_OPTIONS_H
#define CLI_PROGRAMS_TOP_OPTIONS_H

#include "base/text/quantity.h"
#include "model/optional.h"
#include "spec/option.h"
#include "view/columns.h"

struct top_options {
    const char *inventory;
    enum view_column column;
    const char *filter;
    struct optional_number interval; /* nanoseconds */
};

extern const struct option_set top_option_set;

#endif
