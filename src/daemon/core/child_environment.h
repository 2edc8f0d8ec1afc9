/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of a program that the daemon runs. Control characters in values are replaced.
 */
#ifndef DAEMON_CORE_CHILD_ENVIRONMENT_H
#define DAEMON_CORE_CHILD_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/string_list.h"

/* Zeroed memory is an empty environment. The owner finishes the list. */
struct child_environment {
    struct string_list list; /* NAME=VALUE */
    bool failed;             /* memory ran out */
};

/* Adds NAME=VALUE; NULL adds nothing. */
void child_environment_add(struct child_environment *variables, const char *name,
                           const char *value);
void child_environment_add_number(struct child_environment *variables, const char *name,
                                  uint64_t value);

#endif
