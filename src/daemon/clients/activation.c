/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/system/spawn_detached.h"
#include "base/text/quantity.h"

/* The first descriptor that a service manager passes. */
enum { FIRST_PASSED = 3 };

static int read_option(int descriptor, int option)
{
    int value = -1;
    socklen_t length = sizeof(value);

    return getsockopt(descriptor, SOL_SOCKET, option, &value, &length) < 0 ? -1 : value;
}

int activation_listener(int *ret_listener, bool *ret_owned, struct berth_error *error)
{
    const char *pid = getenv("LISTEN_PID");
    const char *count = getenv("LISTEN_FDS");
    const char *name = getenv("LISTEN_FDNAMES");
    bool owned = name != NULL && strcmp(name, DETACHED_LISTENER) == 0;
    bool is_passed = pid != NULL && count != NULL && strtol(pid, NULL, 10) == (long)getpid() &&
                     strtol(count, NULL, 10) > 0;

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    *ret_listener = -1;
    *ret_owned = false;
    if (!is_passed)
        return 0;
    if (read_option(FIRST_PASSED, SO_DOMAIN) != AF_UNIX ||
        read_option(FIRST_PASSED, SO_TYPE) != SOCK_SEQPACKET ||
        read_option(FIRST_PASSED, SO_ACCEPTCONN) != 1)
        return error_set(error, BERTH_ERROR_INVALID,
                         "LISTEN_FDS: expected a listening local SEQPACKET socket, got another");
    fcntl(FIRST_PASSED, F_SETFD, FD_CLOEXEC);
    fcntl(FIRST_PASSED, F_SETFL, O_NONBLOCK);
    *ret_listener = FIRST_PASSED;
    *ret_owned = owned;
    return 0;
}

/* Returns a socket that is connected to the service manager; -1: there is none. */
static int connect_manager(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path == NULL ? 0 : strlen(path);
    int descriptor;

    if (length < 2 || length > sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return -1;
    descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -1;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    if (connect(descriptor, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

static void notify_manager(const char *words)
{
    int descriptor = connect_manager();

    if (descriptor < 0)
        return;
    send(descriptor, words, strlen(words), MSG_NOSIGNAL);
    close(descriptor);
}

void activation_ready(int descriptor)
{
    static const char ready[] = "ready\n";

    notify_manager("READY=1");
    if (descriptor < 0)
        return;
    if (write(descriptor, ready, sizeof(ready) - 1) < 0) {
        /* The starting command has ended; other clients may come. */
    }
    close(descriptor);
}

void activation_stopping(void)
{
    notify_manager("STOPPING=1");
}

void activation_reloading(void)
{
    char words[96];

    snprintf(words, sizeof(words), "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)(clock_now() / 1000));
    notify_manager(words);
}

int64_t activation_watchdog_time(void)
{
    const char *pid = getenv("WATCHDOG_PID");
    const char *time = getenv("WATCHDOG_USEC");
    uint64_t microseconds = 0;

    if (time != NULL && (pid == NULL || strtol(pid, NULL, 10) == (long)getpid()))
        quantity_parse_number(time, 1, INT64_MAX / 1000, &microseconds, NULL);
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    return (int64_t)microseconds * 1000;
}

void activation_alive(int *descriptor)
{
    static const char words[] = "WATCHDOG=1";
    int other;

    /* A full queue has enough of these. */
    if (*descriptor >= 0 &&
        (send(*descriptor, words, strlen(words), MSG_NOSIGNAL) >= 0 || errno == EAGAIN))
        return;
    /* A service manager that was restarted has another socket. */
    other = connect_manager();
    if (other < 0)
        return;
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = other;
    send(*descriptor, words, strlen(words), MSG_NOSIGNAL);
}
