/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/socket_files.h"

#include <string.h>

#include "base/text/text.h"

void socket_files_append(const char *socket, const char *ending, struct text *out)
{
    static const char suffix[] = ".sock";
    size_t length = strlen(socket);

    if (length > sizeof(suffix) && strcmp(socket + length - (sizeof(suffix) - 1), suffix) == 0)
        length -= sizeof(suffix) - 1;
    text_append_bytes(out, socket, length);
    text_append(out, ending);
}
