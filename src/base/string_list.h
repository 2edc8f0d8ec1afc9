/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of strings, which the list owns. Zeroed memory is an empty list. Only one thread may use a
 * list at a time.
 */
#ifndef BASE_STRING_LIST_H
#define BASE_STRING_LIST_H

#include "base/vector.h"

struct string_list {
    VECTOR_OF(char *);
};

/* Adds a copy of `string`. Returns 0, or BERTH_ERROR_MEMORY with the list unchanged. */
int string_list_append(struct string_list *list, const char *string);

/* Frees the strings and leaves an empty list. */
void string_list_finish(struct string_list *list);

#endif
