/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process_stat.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int process_open(pid_t pid, uint64_t started)
{
    int descriptor = pid <= 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);

    if (descriptor < 0)
        return -1;
    if (process_has_ended(descriptor) || (started != 0 && process_stat_started(pid) != started)) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

int process_open_peer(int connection, pid_t pid)
{
    int descriptor = -1;
    socklen_t length = sizeof(descriptor);

    if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &length) == 0)
        return descriptor;
    /* An older kernel; a number that was used again since it connected is as good as impossible. */
    return errno == ENOPROTOOPT ? process_open(pid, 0) : -1;
}

bool process_has_ended(int descriptor)
{
    struct pollfd poller = {.fd = descriptor, .events = POLLIN};

    return poll(&poller, 1, 0) > 0;
}

void process_signal(int descriptor, int number)
{
    syscall(SYS_pidfd_send_signal, descriptor, number, NULL, 0);
}

/* Adds the numbers of a line; returns how many there were, or BERTH_ERROR_MEMORY. */
static int add_numbers(const char *line, size_t most, struct number_list *list)
{
    char *end;
    int count = 0;

    for (size_t i = 0; i < most; i++, line = end) {
        unsigned long number = strtoul(line, &end, 10);
        uint32_t *place = end == line || number > UINT32_MAX ? NULL : vector_append(list);

        if (end == line || number > UINT32_MAX)
            break;
        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = (uint32_t)number;
        count++;
    }
    return count;
}

int process_credentials(pid_t pid, uint32_t *ret_uid, struct number_list *ret_groups)
{
    struct number_list uid = {0};
    char path[64];
    char *line = NULL;
    size_t size = 0;
    int code = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return BERTH_ERROR_NOT_FOUND;
    while (code >= 0 && getline(&line, &size, file) > 0) {
        if (strncmp(line, "Uid:", strlen("Uid:")) == 0)
            code = add_numbers(line + strlen("Uid:"), 1, &uid);
        else if (strncmp(line, "Gid:", strlen("Gid:")) == 0)
            code = add_numbers(line + strlen("Gid:"), 1, ret_groups);
        else if (strncmp(line, "Groups:", strlen("Groups:")) == 0)
            code = add_numbers(line + strlen("Groups:"), SIZE_MAX, ret_groups);
    }
    fclose(file);
    free(line);
    if (code >= 0)
        code = uid.count == 0 ? BERTH_ERROR_NOT_FOUND : 0;
    if (code == 0)
        *ret_uid = uid.items[0];
    vector_finish(&uid);
    return code;
}
