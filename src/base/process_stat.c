/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATE_SIZE = 3, STAT_SIZE = 1024 }; /* " S " */

const char *process_stat_fields(pid_t pid, char *buffer, size_t size)
{
    char path[64];
    int descriptor;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return NULL;
    length = read(descriptor, buffer, size - 1);
    close(descriptor);
    if (length <= 0)
        return NULL;
    buffer[length] = '\0';
    buffer = strrchr(buffer, ')');
    return buffer == NULL ? NULL : buffer + 1;
}

pid_t process_stat_parent(pid_t pid)
{
    char buffer[STAT_SIZE];
    const char *fields = process_stat_fields(pid, buffer, sizeof(buffer));

    return fields == NULL || strlen(fields) <= STATE_SIZE
               ? 0
               : (pid_t)strtol(fields + STATE_SIZE, NULL, 10);
}

bool process_stat_user(pid_t pid, uint32_t *ret_uid)
{
    static const char line[] = "\nUid:\t";
    char path[64];
    char buffer[1024];
    ssize_t length;
    const char *found;
    int descriptor;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    length = descriptor < 0 ? -1 : read(descriptor, buffer, sizeof(buffer) - 1);
    if (descriptor >= 0)
        close(descriptor);
    buffer[length > 0 ? length : 0] = '\0';
    found = strstr(buffer, line);
    if (found == NULL)
        return false;
    *ret_uid = (uint32_t)strtoul(found + sizeof(line) - 1, NULL, 10);
    return true;
}
