/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/activation.h"

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
/* Finds the service manager's socket. Returns false if there is none. */
static bool find_manager(struct sockaddr_un *ret_address, socklen_t *ret_length)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path == NULL ? 0 : strlen(path);

    if (length < 2 || length > sizeof(ret_address->sun_path) || (path[0] != '/' && path[0] != '@'))
        return false;
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_address->sun_path, path, length);
    if (path[0] == '@')
        ret_address->sun_path[0] = '\0';
    *ret_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    return true;
}

/* Sends without a connection, so that a service manager that was restarted gets the words too. */
static void send_to_manager(int *descriptor, const char *words)
{
    struct sockaddr_un address;
    socklen_t length;

    if (!find_manager(&address, &length))
        return;
    if (*descriptor < 0)
        *descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*descriptor >= 0)
        sendto(*descriptor, words, strlen(words), MSG_NOSIGNAL, (struct sockaddr *)&address,
               length);
}

static void notify_manager(const char *words)
{
    int descriptor = -1;

    send_to_manager(&descriptor, words);
    if (descriptor >= 0)
        close(descriptor);
}

void activation_ready(int descriptor)
{
    static const char ready[] = "ready\n";

    notify_manager("READY=1");
    if (descriptor < 0)
        return;
    if (write(descriptor, ready, sizeof(ready) - 1) < 0) {
        /* The starting command has ended, but other clients may connect. */
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
    send_to_manager(descriptor, "WATCHDOG=1");
}
