/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of a fixed set of values. Parsing, printing, help and error messages use the same table.
 * Tables are static and end with a NULL name. Pure functions; any thread may call them.
 */
#ifndef BASE_TEXT_CHOICE_H
#define BASE_TEXT_CHOICE_H

#include <berth/error.h>

#include "base/text/text.h"

struct choice {
    const char *name;
    int value;
};

/* Returns the name of `value`, or NULL when the table has none. */
const char *choice_name(const struct choice *table, int value);

/* Finds the value of a name, which is case-sensitive. Fails with BERTH_ERROR_INVALID, or
 * BERTH_ERROR_MEMORY, and a message that lists all names and suggests the nearest one; *ret_value
 * is untouched then. */
int choice_parse(const struct choice *table, const char *name, int *ret_value,
                 struct berth_error *error);

/* Appends all names: choice_list(out, table, "|") gives "low|normal|high". */
void choice_list(struct text *out, const struct choice *table, const char *separator);

#endif
