/* SPDX-License-Identifier: Apache-2.0 */
#include "base/string_list.h"

#include <string.h>

#include "base/error.h"

int string_list_append(struct string_list *list, const char *string)
{
    char *copy = strdup(string);
    char **place = copy == NULL ? NULL : vector_append(list);

    if (place == NULL) {
        free(copy);
        return BERTH_ERROR_MEMORY;
    }
    *place = copy;
    return 0;
}

void string_list_finish(struct string_list *list)
{
    char **string;

    vector_for_each (string, list)
        free(*string);
    vector_finish(list);
}
