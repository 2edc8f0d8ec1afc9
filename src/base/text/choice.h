/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for a fixed set of values: one table from which parsing, printing, help and error
 * messages come. Tables are static and end with a NULL name. Pure; any thread may call these.
 */
#ifndef BASE_TEXT_CHOICE_H
#define BASE_TEXT_CHOICE_H

#include <berth/error.h>

#include "base/text/text.h"

struct choice {
    const char *name;
    int value;
};

/* The name of `value`; NULL when the table has none. */
const char *choice_name(const struct choice *table, int value);

/* Finds a name, exactly. Fails with BERTH_ERROR_INVALID and a message that lists the names and
 * suggests the nearest; *ret_value is untouched then. */
int choice_parse(const struct choice *table, const char *name, int *ret_value,
                 struct berth_error *error);

/* Appends all names: choice_list(out, table, "|") gives "low|normal|high". */
void choice_list(struct text *out, const struct choice *table, const char *separator);

#endif
