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
    /* A terminal accepts this many bytes when poll() reports it writable. */
    TERMINAL_MAX = 256,
};

/* Opens the file again with O_NONBLOCK: set on the descriptor, the flag would also affect the other
 * processes that share it. Works for pipes and terminals, if permitted. */
static void reopen_nonblocking(struct output_queue *queue)
{
    char path[32];
    int own;

    if (!S_ISFIFO(queue->mode) && !isatty(queue->descriptor))
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", queue->descriptor);
    own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0)
        return;
    queue->descriptor = own;
    queue->is_own = true;
}

void output_queue_open(struct output_queue *queue, int descriptor)
{
    struct stat file;

    *queue = (struct output_queue){.descriptor = descriptor};
    /* If the standard descriptor was closed, its number may be in use by this process. */
    if ((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0 || fstat(descriptor, &file) < 0)
        return;
    queue->is_open = true;
    queue->mode = file.st_mode;
    queue->device = file.st_dev;
    queue->inode = file.st_ino;
    reopen_nonblocking(queue);
}

void output_queue_close(struct output_queue *queue)
{
    if (queue->is_own)
        close(queue->descriptor);
    text_finish(&queue->pending);
    *queue = (struct output_queue){0};
}

bool output_queue_is_same_file(const struct output_queue *queue, int descriptor)
{
    struct stat file;

    return queue->is_open && (fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0 &&
           fstat(descriptor, &file) == 0 && file.st_dev == queue->device &&
           file.st_ino == queue->inode;
}

bool output_queue_is_open(const struct output_queue *queue)
{
    return queue->is_open && queue->failure == 0;
}

bool output_queue_has_room(const struct output_queue *queue)
{
    return output_queue_is_open(queue) && queue->pending.length - queue->written < ROOM;
}

struct pollfd output_queue_poll_entry(const struct output_queue *queue)
{
    bool waits = output_queue_is_open(queue) && queue->written < queue->pending.length;

    return (struct pollfd){.fd = waits ? queue->descriptor : -1, .events = POLLOUT};
}

void output_queue_fail(struct output_queue *queue, int failure)
{
    if (queue->failure == 0)
        queue->failure = failure;
    text_clear(&queue->pending);
    queue->written = 0;
}

/* Returns how many bytes can be written without blocking after poll() reported the descriptor. */
static size_t chunk_max(const struct output_queue *queue)
{
    if (queue->is_own || S_ISSOCK(queue->mode))
        return ROOM;
    if (S_ISFIFO(queue->mode))
        return PIPE_BUF;
    return S_ISCHR(queue->mode) ? TERMINAL_MAX : ROOM;
}

/* Writes without SIGPIPE. Returns as write does. */
static ssize_t write_quietly(const struct output_queue *queue, const char *bytes, size_t length)
{
    const struct timespec at_once = {0};
    sigset_t pipe_signal;
    sigset_t before;
    ssize_t result;
    int number;

    if (S_ISSOCK(queue->mode))
        return send(queue->descriptor, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!S_ISFIFO(queue->mode))
        return write(queue->descriptor, bytes, length);
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_signal, &before);
    result = write(queue->descriptor, bytes, length);
    number = errno;
    if (result < 0 && number == EPIPE)
        sigtimedwait(&pipe_signal, NULL, &at_once);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = number;
    return result;
}

/* Removes the written bytes. A queue that is never empty would otherwise grow without limit. */
static void drop_written(struct output_queue *queue)
{
    struct text *pending = &queue->pending;

    pending->length -= queue->written;
    memmove(pending->bytes, pending->bytes + queue->written, pending->length + 1);
    queue->written = 0;
}

void output_queue_write(struct output_queue *queue)
{
    size_t left = queue->pending.length - queue->written;
    size_t max = chunk_max(queue);
    ssize_t length =
        write_quietly(queue, queue->pending.bytes + queue->written, left < max ? left : max);

    if (length < 0) {
        if (errno != EAGAIN && errno != EINTR)
            output_queue_fail(queue, errno);
        return;
    }
    queue->written += (size_t)length;
    if (queue->written == queue->pending.length || queue->written >= ROOM)
        drop_written(queue);
}
