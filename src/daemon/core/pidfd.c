/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/pidfd.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/pidfd_info.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { BY_SIGNAL = 128 };

int pidfd_open_process(pid_t pid)
{
    int descriptor = pid <= 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);

    if (descriptor < 0)
        return -1;
    if (pidfd_has_ended(descriptor)) {
        close(descriptor);
        errno = ESRCH;
        return -1;
    }
    return descriptor;
}

int pidfd_open_peer(int connection, pid_t pid)
{
    int descriptor = -1;
    socklen_t length = sizeof(descriptor);

    if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &length) == 0)
        return descriptor;
    /* Linux before 6.5. Reuse of the pid since the connection is practically impossible. */
    return errno == ENOPROTOOPT ? pidfd_open_process(pid) : -1;
}

bool pidfd_has_ended(int descriptor)
{
    struct pollfd poller = {.fd = descriptor, .events = POLLIN};

    return poll(&poller, 1, 0) > 0;
}

bool pidfd_is_zombie(int descriptor)
{
    return pidfd_has_ended(descriptor) &&
           syscall(SYS_pidfd_send_signal, descriptor, 0, NULL, 0) == 0;
}

int pidfd_exit_code(int descriptor)
{
    int status;

    if (!pidfd_info_read_status(descriptor, &status))
        return -1;
    return WIFSIGNALED(status) ? BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

bool pidfd_user(int descriptor, uint32_t *ret_uid)
{
    struct pidfd_facts facts;

    if (!pidfd_info_read(descriptor, &facts))
        return false;
    *ret_uid = facts.real_uid;
    return true;
}

bool pidfd_find_user(int descriptor, pid_t pid, uint32_t *ret_uid)
{
    struct stat status;
    char path[64];

    if (pidfd_user(descriptor, ret_uid))
        return true;
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    /* The number was not used again if the process still runs afterwards. */
    if (stat(path, &status) < 0 || pidfd_has_ended(descriptor))
        return false;
    *ret_uid = status.st_uid;
    return true;
}

void pidfd_signal(int descriptor, int number)
{
    syscall(SYS_pidfd_send_signal, descriptor, number, NULL, 0);
}
