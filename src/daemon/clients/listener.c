/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/listener.h"

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
#include "base/system/socket_files.h"
#include "base/text/quantity.h"
#include "base/text/text.h"

enum { BACKLOG = 4096, LOCK_TRIES = 250 };
#define LOCK_PAUSE (DURATION_SECOND / 50)

static size_t directory_length(const char *socket)
{
    const char *slash = strrchr(socket, '/');

    return slash == NULL ? 0 : (size_t)(slash - socket);
}

/* Opens a directory with a shared lock, which keeps systemd-tmpfiles and the like away from it. */
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

/* The directory in /run vanishes with each boot. The next step reports a failure. */
static void make_directory(const char *path, size_t length)
{
    char *name = strndup(path, length);

    if (name != NULL && length > 0)
        mkdir(name, 0755);
    free(name);
}

/* Checks the private directory below /tmp, where other users can create files. The command that
 * starts a daemon has checked it; a service manager has not. */
static int check_own(const struct listener *listener, struct berth_error *error)
{
    struct stat status;
    int length = (int)directory_length(listener->path);

    if (listener->directory < 0 || fstat(listener->directory, &status) < 0)
        return error_set_errno(error, errno, "cannot open %.*s", length, listener->path);
    if (status.st_uid == geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0)
        return 0;
    return error_set(error, BERTH_ERROR_PERMISSION,
                     "%.*s: expected a directory of user %ju that is closed to others (mode 0700), "
                     "got one of user %ju with mode %04o",
                     length, listener->path, (uintmax_t)geteuid(), (uintmax_t)status.st_uid,
                     (unsigned)(status.st_mode & 07777));
}

/* The lock may belong to an earlier daemon of another user. */
static int explain_lock(const char *path, int number, struct berth_error *error)
{
    struct stat status;

    if (number != EACCES || lstat(path, &status) < 0 || status.st_uid == geteuid())
        return error_set_errno(error, number, "cannot open %s", path);
    return error_set(error, BERTH_ERROR_PERMISSION,
                     "%s: expected a file of user %ju, got one of user %ju, who ran the daemon "
                     "before; root can take over the files of root with berthd --user",
                     path, (uintmax_t)geteuid(), (uintmax_t)status.st_uid);
}

void listener_init(struct listener *listener, const char *path, int descriptor, bool owns_path)
{
    *listener = (struct listener){
        .watch.descriptor = descriptor,
        .path = path,
        .owns_path = owns_path,
        .lock = -1,
        .directory = -1,
        .outer_directory = -1,
    };
}

int listener_lock(struct listener *listener, struct berth_error *error)
{
    const char *socket = listener->path;
    size_t length = directory_length(socket);
    struct text path = {0};
    int code = 0;

    if (!listener->is_own)
        make_directory(socket, length);
    /* Both stay locked until the process ends. */
    listener->directory = keep_directory(socket, length, listener->is_own ? O_NOFOLLOW : 0);
    if (listener->is_own && listener->has_parent) {
        while (length > 0 && socket[--length] != '/') {
        }
        listener->outer_directory = keep_directory(socket, length, O_NOFOLLOW);
    }
    if (listener->is_own)
        code = check_own(listener, error);
    if (code < 0)
        return code;
    socket_files_append(socket, ".lock", &path);
    if (text_failed(&path)) {
        text_finish(&path);
        return error_set_memory(error);
    }
    listener->lock = open(path.bytes, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (listener->lock < 0)
        code = explain_lock(path.bytes, errno, error);
    else
        code = take_lock(listener->lock, path.bytes, error);
    text_finish(&path);
    return code;
}

static int bind_to(int descriptor, const struct listener *listener, struct berth_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = listener->path;
    mode_t former;
    int failed;

    if (strlen(path) >= sizeof(address.sun_path))
        return error_set(error, BERTH_ERROR_INVALID,
                         "%s: expected a socket path of at most %zu bytes, got %zu", path,
                         sizeof(address.sun_path) - 1, strlen(path));
    memcpy(address.sun_path, path, strlen(path));
    /* This daemon has the lock, so the socket is a leftover. */
    unlink(path);
    former = umask(listener->is_own ? 0177 : 0111);
    failed = bind(descriptor, (struct sockaddr *)&address, sizeof(address));
    umask(former);
    return failed < 0 || listen(descriptor, BACKLOG) < 0
               ? error_set_errno(error, errno, "cannot listen on %s", path)
               : 0;
}

/* Remembers the file, to remove no other. */
static void remember_file(struct listener *listener)
{
    struct stat status;

    if (stat(listener->path, &status) == 0)
        listener->inode = status.st_ino;
}

int listener_open(struct listener *listener, struct berth_error *error)
{
    int code = 0;

    if (listener->watch.descriptor < 0) {
        listener->watch.descriptor =
            socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (listener->watch.descriptor < 0)
            return error_set_errno(error, errno, "cannot create a socket");
        code = bind_to(listener->watch.descriptor, listener, error);
        listener->owns_path = code == 0;
    }
    if (code == 0)
        remember_file(listener);
    return code;
}

/* Takes the lock of the commands that start a daemon. Returns -1 if another process has it. */
static int take_start(const struct listener *listener)
{
    struct text path = {0};
    int descriptor;

    text_append_bytes(&path, listener->path, directory_length(listener->path));
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

static void remove_path(const struct listener *listener)
{
    struct stat status;

    if (stat(listener->path, &status) == 0 && status.st_ino == listener->inode)
        unlink(listener->path);
}

static bool has_client(const struct listener *listener)
{
    struct pollfd poller = {.fd = listener->watch.descriptor, .events = POLLIN};

    return poll(&poller, 1, 0) > 0;
}

bool listener_close_unused(struct listener *listener)
{
    int start = -1;

    if (listener->owns_path) {
        start = take_start(listener);
        if (start < 0)
            return false;
    }
    if (has_client(listener)) {
        if (start >= 0)
            close(start);
        return false;
    }
    /* From now on a client finds no socket and starts another daemon; a service manager keeps its
     * own socket and does the same. */
    if (listener->owns_path)
        remove_path(listener);
    listener->owns_path = false;
    close(listener->watch.descriptor);
    listener->watch.descriptor = -1;
    if (start >= 0)
        close(start);
    return true;
}

void listener_finish(struct listener *listener)
{
    /* A private daemon that is starting may be about to take the path. */
    int start = listener->is_own && listener->owns_path ? take_start(listener) : -1;

    if (listener->owns_path && (start >= 0 || !listener->is_own))
        remove_path(listener);
    if (listener->watch.descriptor >= 0)
        close(listener->watch.descriptor);
    if (start >= 0)
        close(start);
    if (listener->lock >= 0)
        close(listener->lock);
    if (listener->directory >= 0)
        close(listener->directory);
    if (listener->outer_directory >= 0)
        close(listener->outer_directory);
}
