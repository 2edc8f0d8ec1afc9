/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sysroot.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int sysroot_find(char **ret_prefix, struct berth_error *error)
{
    const char *given = getenv("BERTH_SYSROOT");
    char *prefix = given == NULL || *given == '\0' ? strdup("") : realpath(given, NULL);

    /* What is not there has no files either. */
    if (prefix == NULL && given != NULL)
        prefix = strdup(given);
    if (prefix == NULL)
        return error_set_memory(error);
    if (strcmp(prefix, "/") == 0)
        *prefix = '\0';
    *ret_prefix = prefix;
    return 0;
}
