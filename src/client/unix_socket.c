/* SPDX-License-Identifier: Apache-2.0 */
#include "client/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAITING_MAX = 4096 };

/* Makes a socket address. The kernel accepts only short paths. A longer path is opened, and the
 * descriptor's path in /proc is used instead; the caller closes *ret_handle then. */
static int make_address(const char *path, struct sockaddr_un *ret_name, int *ret_handle)
{
    size_t length = strlen(path);

    *ret_name = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (length < sizeof(ret_name->sun_path)) {
        memcpy(ret_name->sun_path, path, length);
        return 0;
    }
    *ret_handle = open(path, O_PATH | O_CLOEXEC);
    if (*ret_handle < 0)
        return errno;
    snprintf(ret_name->sun_path, sizeof(ret_name->sun_path), "/proc/self/fd/%d", *ret_handle);
    return 0;
}

/* Connects without blocking: a blocking connect could wait forever for a daemon that is stopped. */
static int connect_nonblocking(int socket, const struct sockaddr_un *name)
{
    int result;

    do {
        result = connect(socket, (const struct sockaddr *)name, sizeof(*name));
    } while (result < 0 && errno == EINTR);
    if (result < 0 || fcntl(socket, F_SETFL, 0) < 0)
        return errno;
    return 0;
}

int unix_socket_connect(const char *path, int *ret_socket)
{
    struct sockaddr_un name;
    int handle = -1;
    int connected = -1;
    int number = make_address(path, &name, &handle);

    if (number != 0)
        return number;
    connected = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    number = connected < 0 ? errno : connect_nonblocking(connected, &name);
    if (handle >= 0)
        close(handle);
    if (number == 0)
        *ret_socket = connected;
    else if (connected >= 0)
        close(connected);
    return number;
}

/* Sets the mode with chmod, because the file-mode mask belongs to the whole process. No process can
 * connect before listen(). */
static int bind_and_listen(int socket, int directory, const char *name)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    int length =
        snprintf(place.sun_path, sizeof(place.sun_path), "/proc/self/fd/%d/%s", directory, name);

    if (length < 0 || (size_t)length >= sizeof(place.sun_path))
        return ENAMETOOLONG;
    if (bind(socket, (const struct sockaddr *)&place, sizeof(place)) < 0 ||
        fchmodat(directory, name, S_IRUSR | S_IWUSR, 0) < 0 || listen(socket, WAITING_MAX) < 0)
        return errno;
    return 0;
}

int unix_socket_listen(int directory, const char *name, int *ret_socket)
{
    int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int number;

    if (listening < 0)
        return errno;
    number = bind_and_listen(listening, directory, name);
    if (number == 0)
        *ret_socket = listening;
    else
        close(listening);
    return number;
}
