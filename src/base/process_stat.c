/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATE_SIZE = 3, STAT_SIZE = 1024 }; /* " S " */

/* Numbers of fields in /proc/PID/stat. */
enum { STATE_FIELD = 3, START_FIELD = 22 };

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

uint64_t process_stat_started(pid_t pid)
{
    char buffer[STAT_SIZE];
    const char *fields = pid <= 0 ? NULL : process_stat_fields(pid, buffer, sizeof(buffer));
    char state;

    if (fields == NULL || sscanf(fields, " %c", &state) != 1 || state == 'Z' || state == 'X')
        return 0;
    for (int field = STATE_FIELD; fields != NULL && field < START_FIELD; field++)
        fields = strchr(fields + 1, ' ');
    return fields == NULL ? 0 : strtoull(fields, NULL, 10);
}
