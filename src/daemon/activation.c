/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/activation.h"

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

enum { FIRST_HANDED = 3 };

static int option_of(int descriptor, int option)
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
    bool handed = pid != NULL && count != NULL && strtol(pid, NULL, 10) == (long)getpid() &&
                  strtol(count, NULL, 10) > 0;

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    *ret_listener = -1;
    *ret_owned = false;
    if (!handed)
        return 0;
    if (option_of(FIRST_HANDED, SO_DOMAIN) != AF_UNIX ||
        option_of(FIRST_HANDED, SO_TYPE) != SOCK_SEQPACKET ||
        option_of(FIRST_HANDED, SO_ACCEPTCONN) != 1)
        return error_set(error, BERTH_ERROR_INVALID,
                         "LISTEN_FDS: expected a listening local SEQPACKET socket, got another");
    fcntl(FIRST_HANDED, F_SETFD, FD_CLOEXEC);
    fcntl(FIRST_HANDED, F_SETFL, O_NONBLOCK);
    *ret_listener = FIRST_HANDED;
    *ret_owned = owned;
    return 0;
}

static void notify(const char *words)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path == NULL ? 0 : strlen(path);
    int descriptor;

    if (length < 2 || length > sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    sendto(descriptor, words, strlen(words), MSG_NOSIGNAL, (struct sockaddr *)&address,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(descriptor);
}

void activation_ready(int descriptor)
{
    static const char ready[] = "ready\n";

    notify("READY=1");
    if (descriptor < 0)
        return;
    if (write(descriptor, ready, sizeof(ready) - 1) < 0) {
        /* Whoever started us is gone; others may come. */
    }
    close(descriptor);
}

void activation_stopping(void)
{
    notify("STOPPING=1");
}

void activation_reloading(void)
{
    char words[96];

    snprintf(words, sizeof(words), "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)(clock_now() / 1000));
    notify(words);
}
