/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/program_name.h"

#include <string.h>

static const char blanks[] = " \t";

const char *program_name_find(const char *command, size_t *ret_length)
{
    const char *name = command + strspn(command, blanks);
    const char *end = name + strcspn(name, blanks);

    for (const char *at = name; at < end; at++) {
        if (*at == '/' && at + 1 < end)
            name = at + 1;
    }
    *ret_length = (size_t)(end - name);
    return name;
}

char *program_name_copy(const char *command)
{
    size_t length = 0;
    const char *name = command == NULL ? NULL : program_name_find(command, &length);

    return name == NULL ? NULL : strndup(name, length);
}
