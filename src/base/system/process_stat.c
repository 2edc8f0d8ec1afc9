/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/process_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"

enum { STAT_SIZE = 1024 };

/* Numbers of fields in /proc/PID/stat. */
enum { STATE_FIELD = 3, PARENT_FIELD = 4, START_FIELD = 22 };

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

char process_stat_state(const char *fields)
{
    return fields[0] == ' ' ? fields[1] : '\0';
}

bool process_stat_has_ended(const char *fields)
{
    char state = process_stat_state(fields);

    return state == 'Z' || state == 'X';
}

uint64_t process_stat_number(const char *fields, int number)
{
    for (int field = STATE_FIELD; fields != NULL && field < number; field++)
        fields = strchr(fields + 1, ' ');
    return fields == NULL ? 0 : strtoull(fields, NULL, 10);
}

int64_t process_stat_age(const char *fields)
{
    uint64_t ticks = process_stat_number(fields, START_FIELD);
    uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t began = ticks / hertz * 1000000000 + ticks % hertz * 1000000000 / hertz;

    return clock_read(CLOCK_BOOTTIME) - (int64_t)began;
}

pid_t process_stat_parent(pid_t pid)
{
    char buffer[STAT_SIZE];
    const char *fields = process_stat_fields(pid, buffer, sizeof(buffer));

    return fields == NULL ? 0 : (pid_t)process_stat_number(fields, PARENT_FIELD);
}

uint64_t process_stat_started(pid_t pid)
{
    char buffer[STAT_SIZE];
    const char *fields = pid <= 0 ? NULL : process_stat_fields(pid, buffer, sizeof(buffer));

    return fields == NULL || process_stat_has_ended(fields)
               ? 0
               : process_stat_number(fields, START_FIELD);
}
