/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The running program's directory comes first, for builds that are not installed, or installed
 * elsewhere. The kernel reports this directory correctly even when the program's file was replaced
 * meanwhile. */
void program_find(const char *name, char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size);

    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length > 0 && (size_t)length + strlen(name) < size) {
        strcpy(path + length, name);
        if (access(path, X_OK) == 0)
            return;
    }
    snprintf(path, size, "%s/%s", BERTH_BINDIR, name);
}
