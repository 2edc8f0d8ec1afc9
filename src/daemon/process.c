/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The fields of /proc/PID/stat after the name, counted from 0: state and start time. */
enum { STATE_FIELD = 0, START_FIELD = 19 };

static bool read_stat(pid_t pid, char *buffer, size_t size)
{
    char path[64];
    int descriptor;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    length = read(descriptor, buffer, size - 1);
    close(descriptor);
    if (length <= 0)
        return false;
    buffer[length] = '\0';
    return true;
}

uint64_t process_started(pid_t pid)
{
    char buffer[1024];
    char *cursor;

    if (pid <= 0 || !read_stat(pid, buffer, sizeof(buffer)))
        return 0;
    /* The name may hold anything, a closing bracket too. */
    cursor = strrchr(buffer, ')');
    if (cursor == NULL || cursor[1] != ' ')
        return 0;
    cursor += 2;
    if (*cursor == 'Z' || *cursor == 'X')
        return 0;
    for (int field = STATE_FIELD; field < START_FIELD; field++) {
        cursor = strchr(cursor, ' ');
        if (cursor == NULL)
            return 0;
        cursor++;
    }
    return strtoull(cursor, NULL, 10);
}

int process_open(pid_t pid, uint64_t started)
{
    int descriptor = pid <= 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);

    if (descriptor < 0)
        return -1;
    if (process_has_ended(descriptor) || (started != 0 && process_started(pid) != started)) {
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
