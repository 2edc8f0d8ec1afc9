/* SPDX-License-Identifier: Apache-2.0
 *
 * The variables that a program is told things by. What others chose is made inert.
 */
#ifndef DAEMON_VARIABLES_H
#define DAEMON_VARIABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/string_list.h"

/* Zeroed memory has none; the owner finishes the list. */
struct variables {
    struct string_list list; /* NAME=VALUE */
    bool failed;             /* memory ran out */
};

/* NULL: it is not set. */
void variables_add(struct variables *variables, const char *name, const char *value);
void variables_add_number(struct variables *variables, const char *name, uint64_t value);

#endif
