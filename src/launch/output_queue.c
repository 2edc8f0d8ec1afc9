/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/output_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ROOM = 65536,
    /* What a terminal has room for when the poll says so, whatever it is. */
    TERMINAL_MAX = 256,
};

/* O_NONBLOCK belongs to the file description, which is not ours alone. A pipe and a terminal can be
 * opened again, if we may. */
static void open_again(struct sink *sink)
{
    char path[32];
    int own;

    if (!S_ISFIFO(sink->mode) && !isatty(sink->descriptor))
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", sink->descriptor);
    own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0)
        return;
    sink->descriptor = own;
    sink->is_own = true;
}

void sink_open(struct sink *sink, int descriptor)
{
    struct stat file;

    *sink = (struct sink){.descriptor = descriptor};
    /* Where a standard descriptor is closed, its number may have become something else of ours. */
    if ((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0 || fstat(descriptor, &file) < 0)
        return;
    sink->is_open = true;
    sink->mode = file.st_mode;
    sink->device = file.st_dev;
    sink->inode = file.st_ino;
    open_again(sink);
}

void sink_close(struct sink *sink)
{
    if (sink->is_own)
        close(sink->descriptor);
    text_finish(&sink->pending);
    *sink = (struct sink){0};
}

bool sink_is(const struct sink *sink, int descriptor)
{
    struct stat file;

    return sink->is_open && (fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0 &&
           fstat(descriptor, &file) == 0 && file.st_dev == sink->device &&
           file.st_ino == sink->inode;
}

bool sink_is_open(const struct sink *sink)
{
    return sink->is_open && sink->failure == 0;
}

bool sink_has_room(const struct sink *sink)
{
    return sink_is_open(sink) && sink->pending.length - sink->written < ROOM;
}

struct pollfd sink_ask(const struct sink *sink)
{
    bool waits = sink_is_open(sink) && sink->written < sink->pending.length;

    return (struct pollfd){.fd = waits ? sink->descriptor : -1, .events = POLLOUT};
}

void sink_fail(struct sink *sink, int failure)
{
    if (sink->failure == 0)
        sink->failure = failure;
    text_clear(&sink->pending);
    sink->written = 0;
}

/* How much can be written without waiting, once the poll has answered. */
static size_t chunk_max(const struct sink *sink)
{
    if (sink->is_own || S_ISSOCK(sink->mode))
        return ROOM;
    if (S_ISFIFO(sink->mode))
        return PIPE_BUF;
    return S_ISCHR(sink->mode) ? TERMINAL_MAX : ROOM;
}

/* A write that nobody dies of. Returns as write does. */
static ssize_t write_quietly(const struct sink *sink, const char *bytes, size_t length)
{
    const struct timespec at_once = {0};
    sigset_t pipe_signal;
    sigset_t before;
    ssize_t result;
    int number;

    if (S_ISSOCK(sink->mode))
        return send(sink->descriptor, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!S_ISFIFO(sink->mode))
        return write(sink->descriptor, bytes, length);
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_signal, &before);
    result = write(sink->descriptor, bytes, length);
    number = errno;
    if (result < 0 && number == EPIPE)
        sigtimedwait(&pipe_signal, NULL, &at_once);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = number;
    return result;
}

/* Makes room where something always waits, too. */
static void forget_written(struct sink *sink)
{
    struct text *pending = &sink->pending;

    pending->length -= sink->written;
    memmove(pending->bytes, pending->bytes + sink->written, pending->length + 1);
    sink->written = 0;
}

void sink_write(struct sink *sink)
{
    size_t left = sink->pending.length - sink->written;
    size_t max = chunk_max(sink);
    ssize_t length =
        write_quietly(sink, sink->pending.bytes + sink->written, left < max ? left : max);

    if (length < 0) {
        if (errno != EAGAIN && errno != EINTR)
            sink_fail(sink, errno);
        return;
    }
    sink->written += (size_t)length;
    if (sink->written == sink->pending.length || sink->written >= ROOM)
        forget_written(sink);
}
