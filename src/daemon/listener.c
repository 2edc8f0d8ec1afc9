/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/user_names.h"
#include "base/text/quantity.h"

enum { BACKLOG = 4096, LOCK_TRIES = 250 };
#define LOCK_PAUSE (DURATION_SECOND / 50)

static size_t directory_length(const char *socket)
{
    const char *slash = strrchr(socket, '/');

    return slash == NULL ? 0 : (size_t)(slash - socket);
}

void listener_beside(const char *socket, const char *ending, struct text *out)
{
    static const char suffix[] = ".sock";
    size_t length = strlen(socket);

    if (length > sizeof(suffix) && strcmp(socket + length - (sizeof(suffix) - 1), suffix) == 0)
        length -= sizeof(suffix) - 1;
    text_append_bytes(out, socket, length);
    text_append(out, ending);
}

/* A descriptor of a directory with a shared lock on it: cleaners leave what is locked alone. */
static int keep_directory(const char *path, size_t length, int flags)
{
    char *name = strndup(path, length);
    int descriptor =
        name == NULL ? -1
                     : open(length == 0 ? "/" : name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);

    free(name);
    if (descriptor >= 0)
        flock(descriptor, LOCK_SH | LOCK_NB);
    return descriptor;
}

static int take_lock(int descriptor, const char *path, struct berth_error *error)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        struct timespec pause = {0, LOCK_PAUSE};

        if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return error_set_errno(error, errno, "cannot lock %s", path);
        nanosleep(&pause, NULL);
    }
    return error_set(error, BERTH_ERROR_BUSY, "cannot lock %s: another daemon uses it", path);
}

/* The machine's own directory is gone with every boot. What fails is told by what comes next. */
static void make_directory(const char *path, size_t length)
{
    char *name = strndup(path, length);

    if (name != NULL && length > 0)
        mkdir(name, 0755);
    free(name);
}

/* A user's own directory is below /tmp, where anybody may have been first. The command that starts
 * a daemon has looked; a service manager has not. */
static int check_own(const struct pool *pool, struct berth_error *error)
{
    struct stat status;
    int length = (int)directory_length(pool->settings.socket);

    if (pool->directory < 0 || fstat(pool->directory, &status) < 0)
        return error_set_errno(error, errno, "cannot open %.*s", length, pool->settings.socket);
    if (status.st_uid == geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0)
        return 0;
    return user_names_explain(
        error,
        error_set(error, BERTH_ERROR_PERMISSION,
                  "%.*s: expected a directory of user %ju that is closed to others (mode 0700), "
                  "got one of user %ju with mode %04o",
                  length, pool->settings.socket, (uintmax_t)geteuid(), (uintmax_t)status.st_uid,
                  (unsigned)(status.st_mode & 07777)));
}

/* The lock that cannot be opened may be of a daemon that ran as somebody else. */
static int explain_lock(const char *path, int number, struct berth_error *error)
{
    struct stat status;

    if (number != EACCES || lstat(path, &status) < 0 || status.st_uid == geteuid())
        return error_set_errno(error, number, "cannot open %s", path);
    return user_names_explain(
        error, error_set(error, BERTH_ERROR_PERMISSION,
                         "%s: expected a file of user %ju, got one of user %ju, who ran the daemon "
                         "before; root can take over the files of root with berthd --user",
                         path, (uintmax_t)geteuid(), (uintmax_t)status.st_uid));
}

int listener_lock(struct pool *pool, struct berth_error *error)
{
    const char *socket = pool->settings.socket;
    size_t length = directory_length(socket);
    struct text path = {0};
    int code = 0;

    if (!pool->settings.own)
        make_directory(socket, length);
    /* Both stay open, and locked, until the process ends. */
    pool->directory = keep_directory(socket, length, pool->settings.own ? O_NOFOLLOW : 0);
    if (pool->settings.own && pool->settings.inventory != NULL) {
        while (length > 0 && socket[--length] != '/') {
        }
        pool->outer_directory = keep_directory(socket, length, O_NOFOLLOW);
    }
    if (pool->settings.own)
        code = check_own(pool, error);
    if (code < 0)
        return code;
    listener_beside(socket, ".lock", &path);
    if (text_failed(&path))
        return error_set_memory(error);
    pool->lock = open(path.bytes, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (pool->lock < 0)
        code = explain_lock(path.bytes, errno, error);
    else
        code = take_lock(pool->lock, path.bytes, error);
    text_finish(&path);
    return code;
}

static int bind_to(int descriptor, const struct pool *pool, struct berth_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = pool->settings.socket;
    mode_t former;
    int failed;

    if (strlen(path) >= sizeof(address.sun_path))
        return error_set(error, BERTH_ERROR_INVALID,
                         "%s: expected a socket path of at most %zu bytes, got %zu", path,
                         sizeof(address.sun_path) - 1, strlen(path));
    memcpy(address.sun_path, path, strlen(path));
    /* The lock is ours, so what is there is left over. */
    unlink(path);
    former = umask(pool->settings.own ? 0177 : 0111);
    failed = bind(descriptor, (struct sockaddr *)&address, sizeof(address));
    umask(former);
    return failed < 0 || listen(descriptor, BACKLOG) < 0
               ? error_set_errno(error, errno, "cannot listen on %s", path)
               : 0;
}

/* Remembers which file is ours. */
static void remember(struct pool *pool)
{
    struct stat status;

    if (stat(pool->settings.socket, &status) == 0)
        pool->socket_inode = status.st_ino;
}

int listener_open(struct pool *pool, struct berth_error *error)
{
    int code = 0;

    if (pool->listener.descriptor < 0) {
        pool->listener.descriptor =
            socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (pool->listener.descriptor < 0)
            return error_set_errno(error, errno, "cannot create a socket");
        code = bind_to(pool->listener.descriptor, pool, error);
        pool->owns_path = code == 0;
    } else {
        pool->owns_path = pool->settings.owns_path;
    }
    if (code == 0)
        remember(pool);
    return code;
}

/* The lock that starters take; -1: somebody has it. Gone with the process at the latest. */
static int take_start(const struct pool *pool)
{
    struct text path = {0};
    int descriptor;

    text_append_bytes(&path, pool->settings.socket, directory_length(pool->settings.socket));
    text_append(&path, "/start");
    descriptor =
        text_failed(&path) ? -1 : open(path.bytes, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    text_finish(&path);
    if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) < 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

/* Removes the path if it still is our socket. */
static void remove_path(const struct pool *pool)
{
    struct stat status;

    if (stat(pool->settings.socket, &status) == 0 && status.st_ino == pool->socket_inode)
        unlink(pool->settings.socket);
}

static bool somebody_comes(const struct pool *pool)
{
    struct pollfd poller = {.fd = pool->listener.descriptor, .events = POLLIN};

    return poll(&poller, 1, 0) > 0;
}

bool listener_close_unused(struct pool *pool)
{
    int start = -1;

    if (pool->owns_path) {
        start = take_start(pool);
        if (start < 0)
            return false;
    }
    if (somebody_comes(pool)) {
        if (start >= 0)
            close(start);
        return false;
    }
    /* Who comes from now on finds no socket and starts another daemon; at a service manager's
     * socket it is the manager who does. */
    if (pool->owns_path)
        remove_path(pool);
    pool->owns_path = false;
    loop_remove(&pool->loop, &pool->listener);
    close(pool->listener.descriptor);
    pool->listener.descriptor = -1;
    if (start >= 0)
        close(start);
    return true;
}

void listener_finish(struct pool *pool)
{
    /* Of a user's own, the path may be about to be another's. */
    int start = pool->settings.own && pool->owns_path ? take_start(pool) : -1;

    if (pool->owns_path && (start >= 0 || !pool->settings.own))
        remove_path(pool);
    if (pool->listener.descriptor >= 0)
        close(pool->listener.descriptor);
    if (start >= 0)
        close(start);
    if (pool->lock >= 0)
        close(pool->lock);
    if (pool->directory >= 0)
        close(pool->directory);
    if (pool->outer_directory >= 0)
        close(pool->outer_directory);
}
