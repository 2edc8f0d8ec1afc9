/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <errno.h>
#include <poll.h>
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
