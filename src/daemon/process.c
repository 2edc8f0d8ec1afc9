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

/* Numbers of fields in /proc/PID/stat. */
enum { STATE_FIELD = 3, START_FIELD = 22 };

uint64_t process_started(pid_t pid)
{
    char buffer[1024];
    const char *fields = pid <= 0 ? NULL : process_stat_fields(pid, buffer, sizeof(buffer));
    char state;

    if (fields == NULL || sscanf(fields, " %c", &state) != 1 || state == 'Z' || state == 'X')
        return 0;
    for (int field = STATE_FIELD; fields != NULL && field < START_FIELD; field++)
        fields = strchr(fields + 1, ' ');
    return fields == NULL ? 0 : strtoull(fields, NULL, 10);
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
