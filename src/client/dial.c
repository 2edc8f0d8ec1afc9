/* SPDX-License-Identifier: Apache-2.0 */
#include "client/dial.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/backoff.h"
#include "base/system/user_names.h"
#include "base/text/quantity.h"
#include "client/start_daemon.h"
#include "client/unix_socket.h"
#include "client/user_directory.h"

/* A daemon may exit when idle, or be killed, between its start and the connection. */
enum { STARTS_MAX = 5 };

struct dial_settings dial_settings = {
    .refusal_timeout = 5 * DURATION_SECOND,
    .start_timeout = 10 * DURATION_SECOND,
    .reconnect_timeout = 30 * DURATION_SECOND,
};

/* Checks that the daemon in the user's own directory runs as the user. Checks the directory too: in
 * another user's directory, the socket could be a symlink to one of this user's other sockets. */
static int check_own(const struct pool_address *address, int socket, struct berth_error *error)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return error_set_errno(error, errno, "cannot identify the daemon at %s", address->socket);
    if (peer.uid != geteuid())
        return user_names_explain(
            error, error_set(error, BERTH_ERROR_PERMISSION,
                             "%s: expected a daemon of user %ju, got one of user %ju",
                             address->socket, (uintmax_t)geteuid(), (uintmax_t)peer.uid));
    return user_directory_check_last(address, error);
}

static int keep_if_trusted(const struct pool_address *address, int socket, int *ret_socket,
                           struct berth_error *error)
{
    int code = address->own ? check_own(address, socket, error) : 0;

    if (code == 0)
        *ret_socket = socket;
    else
        close(socket);
    return code;
}

static bool is_absence(int number)
{
    return number == ENOENT || number == ECONNREFUSED || number == ENOTDIR;
}

/* Returns whether a retry may help. A busy daemon accepts connections again soon. A daemon that
 * refuses connections is being replaced, except for the user's own, which the caller replaces. The
 * machine's socket is missing for a moment while its daemon is replaced; a missing BERTH_SOCKET is
 * more likely a wrong name. */
static bool is_temporary(const struct pool_address *address, int number)
{
    if (number == EAGAIN)
        return true;
    if (address->own)
        return false;
    return number == ECONNREFUSED || (address->machine && number == ENOENT);
}

static int explain_failure(const struct pool_address *address, int number,
                           struct berth_error *error)
{
    int code = address->own ? user_directory_check(address, error) : 0;

    if (code < 0)
        return code;
    if (number == EAGAIN)
        return error_set(error, BERTH_ERROR_IO, "%s: the daemon accepts no more connections",
                         address->socket);
    if (number == ECONNREFUSED)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "%s: no daemon is running (connection refused)", address->socket);
    if (is_absence(number))
        return error_set(error, BERTH_ERROR_NOT_FOUND, "%s: no daemon is running (no such socket)",
                         address->socket);
    return error_set_errno(error, number, "cannot connect to %s", address->socket);
}

int dial_with_timeout(const struct pool_address *address, enum dial_mode how, int64_t timeout,
                      int *ret_socket, struct berth_error *error)
{
    bool may_start = address->own && how == DIAL_START;
    struct backoff waiting = {0};
    unsigned starts = 0;

    for (;;) {
        int socket = -1;
        int number = unix_socket_connect(address->socket, &socket);

        if (number == 0)
            return keep_if_trusted(address, socket, ret_socket, error);
        if (may_start && is_absence(number)) {
            int code =
                starts++ < STARTS_MAX
                    ? start_daemon(address, error)
                    : error_set(error, BERTH_ERROR_IO,
                                "%s: the daemon ended right after its start, %d times: see %s/log",
                                address->directory, STARTS_MAX, address->directory);

            if (code == START_DAEMON_NO_ANSWER && starts == STARTS_MAX)
                code = BERTH_ERROR_IO;
            if (code < 0)
                return code;
            continue;
        }
        if (waiting.until == 0)
            backoff_begin(&waiting, timeout, BACKOFF_PAUSE_MAX);
        if (!is_temporary(address, number) || !backoff_sleep(&waiting))
            return explain_failure(address, number, error);
    }
}

int dial(const struct pool_address *address, enum dial_mode how, int *ret_socket,
         struct berth_error *error)
{
    return dial_with_timeout(address, how, dial_settings.refusal_timeout, ret_socket, error);
}
