/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/labelled_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "launch/output_queue.h"

/* Timeout for a reader that does not read, in milliseconds; only with `hurry`. */
#define TIMEOUT 5000

enum { READ_MAX = 16384 };

/* One of the two pipes of a command. */
struct stream {
    int from;       /* -1: closed */
    int to;         /* -1: closed here */
    int poll_index; /* position of its poll entry; -1: none */
    uint32_t number;
    struct output_queue *queue;
    struct text line; /* the beginning of the current line */
};

struct labelled_output {
    /* For standard output and error; if both are the same file, only the first is used. */
    struct output_queue queues[2];
    struct output_queue *queue_of[2];
    int poll_index[2]; /* positions of their poll entries; -1: none */
    int width;         /* digits of a number */
    bool hurry;
    size_t first; /* the stream that is read first in the next round */
    size_t begun; /* streams whose pipes were opened */
    size_t stream_count;
    struct stream streams[];
};

static int width_of(uint32_t numbers)
{
    int width = 1;

    for (uint32_t largest = numbers == 0 ? 0 : numbers - 1; largest >= 10; largest /= 10)
        width++;
    return width;
}

int labelled_output_create(const struct labelled_output_options *facts,
                           struct labelled_output **ret_labels, struct berth_error *error)
{
    size_t streams = 2 * (size_t)facts->count;
    struct labelled_output *labels =
        calloc(1, sizeof(*labels) + streams * sizeof(*labels->streams));

    if (labels == NULL)
        return error_set_memory(error);
    labels->width = width_of(facts->numbers);
    labels->stream_count = streams;
    output_queue_open(&labels->queues[0], facts->output);
    labels->queue_of[0] = labels->queue_of[1] = &labels->queues[0];
    /* If both are the same file, use one queue, so that lines do not mix. */
    if (!output_queue_is_same_file(&labels->queues[0], facts->error)) {
        output_queue_open(&labels->queues[1], facts->error);
        labels->queue_of[1] = &labels->queues[1];
    }
    *ret_labels = labels;
    return 0;
}

static void close_end(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* Moves the descriptor above the standard ones, which belong to the command. */
static int move_above_standard(int *descriptor)
{
    int other;

    if (*descriptor > STDERR_FILENO)
        return 0;
    other = fcntl(*descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (other < 0)
        return -1;
    close(*descriptor);
    *descriptor = other;
    return 0;
}

/* Opens the pipe. Returns 0, or an errno with both ends closed. */
static int open_stream(struct stream *stream)
{
    int ends[2];
    int number = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    if (move_above_standard(&ends[0]) < 0 || move_above_standard(&ends[1]) < 0 ||
        fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
        number = errno;
    stream->from = ends[0];
    stream->to = ends[1];
    if (number != 0) {
        close_end(&stream->from);
        close_end(&stream->to);
    }
    return number;
}

int labelled_output_open_pipes(struct labelled_output *labels, uint32_t number,
                               struct launch_copy *copy, struct berth_error *error)
{
    int *const ends[] = {&copy->output, &copy->error};
    struct stream *streams = labels->streams + labels->begun;
    int failure = 0;

    for (size_t i = 0; i < COUNT(ends); i++)
        streams[i] = (struct stream){-1, -1, -1, number, labels->queue_of[i], {0}};
    labels->begun += COUNT(ends);
    for (size_t i = 0; i < COUNT(ends) && failure == 0; i++) {
        if (!output_queue_is_open(labels->queue_of[i]))
            continue;
        failure = open_stream(&streams[i]);
        *ends[i] = streams[i].to;
    }
    if (failure == 0)
        return 0;
    labelled_output_close_child_ends(labels);
    return error_set(error, BERTH_ERROR_LIMIT, "cannot create a pipe for labelled output: %s",
                     strerror(failure));
}

void labelled_output_close_child_ends(struct labelled_output *labels)
{
    size_t first = labels->begun < 2 ? 0 : labels->begun - 2;

    for (size_t i = first; i < labels->begun; i++)
        close_end(&labels->streams[i].to);
}

void labelled_output_abandon(struct labelled_output *labels)
{
    labelled_output_close_child_ends(labels);
    for (size_t i = 0; i < labels->begun; i++)
        close_end(&labels->streams[i].from);
}

/* Queues the current line with its label and a newline. */
static void put_line(const struct labelled_output *labels, struct stream *stream)
{
    struct text *out = &stream->queue->pending;

    text_append_format(out, "%*u: ", labels->width, stream->number);
    text_append_bytes(out, text_string(&stream->line), stream->line.length);
    text_append_char(out, '\n');
    if (text_failed(&stream->line) || text_failed(out))
        output_queue_fail(stream->queue, ENOMEM);
    text_clear(&stream->line);
}

static void append_bytes(const struct labelled_output *labels, struct stream *stream,
                         const char *bytes, size_t length)
{
    while (length > 0) {
        size_t room = LABELLED_LINE_MAX - stream->line.length;
        const char *end = memchr(bytes, '\n', length);
        size_t part = end == NULL ? length : (size_t)(end - bytes);

        if (part > room)
            part = room;
        text_append_bytes(&stream->line, bytes, part);
        bytes += part;
        length -= part;
        if (length == 0)
            return;
        put_line(labels, stream);
        if (*bytes == '\n') {
            bytes++;
            length--;
        }
    }
}

static void close_stream(const struct labelled_output *labels, struct stream *stream)
{
    if (stream->line.length > 0)
        put_line(labels, stream);
    text_finish(&stream->line);
    close_end(&stream->from);
}

/* Reads at most `max` bytes. Returns their number; 0: no more for now. */
static size_t read_stream(const struct labelled_output *labels, struct stream *stream, size_t max)
{
    char bytes[READ_MAX];
    ssize_t length = read(stream->from, bytes, max < sizeof(bytes) ? max : sizeof(bytes));

    if (length > 0) {
        append_bytes(labels, stream, bytes, (size_t)length);
        return (size_t)length;
    }
    if (length == 0 || (errno != EAGAIN && errno != EINTR))
        close_stream(labels, stream);
    return 0;
}

/* Closes the streams whose queue has failed, so that their commands notice. */
static void close_failed(struct labelled_output *labels)
{
    for (size_t i = 0; i < labels->begun; i++) {
        struct stream *stream = &labels->streams[i];

        if (stream->from >= 0 && !output_queue_is_open(stream->queue)) {
            text_clear(&stream->line);
            close_stream(labels, stream);
        }
    }
}

size_t labelled_output_poll_max(const struct labelled_output *labels)
{
    return COUNT(labels->queues) + labels->stream_count;
}

/* Adds an entry if its descriptor is open: poll() refuses more entries than RLIMIT_NOFILE. */
static int add_poll_entry(struct pollfd entry, struct pollfd *polls, size_t *count)
{
    if (entry.fd < 0)
        return -1;
    polls[*count] = entry;
    return (int)(*count)++;
}

size_t labelled_output_fill_poll(struct labelled_output *labels, struct pollfd *polls)
{
    size_t count = 0;

    for (size_t i = 0; i < COUNT(labels->queues); i++)
        labels->poll_index[i] =
            add_poll_entry(output_queue_poll_entry(&labels->queues[i]), polls, &count);
    for (size_t i = 0; i < labels->begun; i++) {
        struct stream *stream = &labels->streams[i];
        struct pollfd entry = {.fd = stream->from, .events = POLLIN};

        if (!output_queue_has_room(stream->queue))
            entry.fd = -1;
        stream->poll_index = add_poll_entry(entry, polls, &count);
    }
    return count;
}

static bool is_ready(const struct pollfd *polls, int poll_index)
{
    return poll_index >= 0 && polls[poll_index].revents != 0;
}

void labelled_output_process(struct labelled_output *labels, const struct pollfd *polls)
{
    for (size_t i = 0; i < COUNT(labels->queues); i++) {
        if (is_ready(polls, labels->poll_index[i]))
            output_queue_write(&labels->queues[i]);
    }
    close_failed(labels);
    for (size_t i = 0; i < labels->begun; i++) {
        struct stream *stream = &labels->streams[(labels->first + i) % labels->begun];

        if (is_ready(polls, stream->poll_index) && stream->from >= 0 &&
            output_queue_has_room(stream->queue))
            read_stream(labels, stream, READ_MAX);
    }
    labels->first++;
}

void labelled_output_drain_pipes(struct labelled_output *labels, bool hurry)
{
    labels->hurry = hurry;
    for (size_t i = 0; i < labels->begun; i++) {
        struct stream *stream = &labels->streams[i];
        int left = 0;

        /* Read only the bytes that are there now: another process may still hold the other end. */
        if (stream->from >= 0 && ioctl(stream->from, FIONREAD, &left) < 0)
            left = 0;
        while (left > 0 && stream->from >= 0) {
            size_t length = read_stream(labels, stream, (size_t)left);

            left = length == 0 ? 0 : left - (int)length;
        }
        if (stream->from >= 0)
            close_stream(labels, stream);
    }
}

/* Writes the whole queue. Blocks. */
static void drain_queue(const struct labelled_output *labels, struct output_queue *queue)
{
    struct pollfd waiting = output_queue_poll_entry(queue);

    while (waiting.fd >= 0) {
        int ready = poll(&waiting, 1, labels->hurry ? TIMEOUT : -1);

        if (ready > 0)
            output_queue_write(queue);
        else if (ready == 0)
            output_queue_fail(queue, ETIMEDOUT);
        waiting = output_queue_poll_entry(queue);
    }
}

int labelled_output_finish(struct labelled_output *labels, struct berth_error *error)
{
    int code = 0;

    if (labels == NULL)
        return 0;
    for (size_t i = 0; i < COUNT(labels->queues); i++) {
        struct output_queue *queue = &labels->queues[i];

        drain_queue(labels, queue);
        if (code == 0 && queue->failure == ENOMEM)
            code = error_set_memory(error);
        else if (code == 0 && queue->failure != 0 && queue->failure != EPIPE)
            code = error_set(error, BERTH_ERROR_IO, "cannot write labelled output: %s",
                             strerror(queue->failure));
        output_queue_close(queue);
    }
    labelled_output_abandon(labels);
    for (size_t i = 0; i < labels->begun; i++)
        text_finish(&labels->streams[i].line);
    free(labels);
    return code;
}
