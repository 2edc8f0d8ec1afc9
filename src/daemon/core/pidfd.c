/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/pidfd.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { BY_SIGNAL = 128 };

/* The kernel's struct pidfd_info: users since Linux 6.13, the exit code of a process that was
 * waited for since 6.15. The headers of the build may be older. */
struct process_information {
    uint64_t mask;
    uint64_t control_group;
    uint32_t pids[3];
    uint32_t uids[2]; /* the real user and group, then the effective, saved and file system's */
    uint32_t other_uids[6];
    int32_t exit_code;
};
_Static_assert(sizeof(struct process_information) == 64, "as the kernel's struct pidfd_info began");

#define GET_INFORMATION _IOWR(0xFF, 11, struct process_information)
#define HAS_USERS       (UINT64_C(1) << 1)
#define HAS_EXIT_CODE   (UINT64_C(1) << 3)

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
    struct process_information information = {.mask = HAS_EXIT_CODE};

    if (ioctl(descriptor, GET_INFORMATION, &information) < 0 ||
        (information.mask & HAS_EXIT_CODE) == 0)
        return -1;
    return WIFSIGNALED(information.exit_code) ? BY_SIGNAL + WTERMSIG(information.exit_code)
                                              : WEXITSTATUS(information.exit_code);
}

bool pidfd_user(int descriptor, uint32_t *ret_uid)
{
    struct process_information information = {.mask = HAS_USERS};

    if (ioctl(descriptor, GET_INFORMATION, &information) < 0 || (information.mask & HAS_USERS) == 0)
        return false;
    *ret_uid = information.uids[0];
    return true;
}

void pidfd_signal(int descriptor, int number)
{
    syscall(SYS_pidfd_send_signal, descriptor, number, NULL, 0);
}
