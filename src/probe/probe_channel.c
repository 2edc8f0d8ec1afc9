/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/probe_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "codec/tagged.h"

enum { LENGTH_SIZE = 4, READ_SIZE = 64 * 1024 };

void probe_channel_init(struct probe_channel *channel, int descriptor)
{
    *channel = (struct probe_channel){.descriptor = descriptor};
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

void probe_channel_finish(struct probe_channel *channel)
{
    if (channel->descriptor >= 0)
        close(channel->descriptor);
    text_finish(&channel->in);
    text_finish(&channel->out);
    *channel = (struct probe_channel){.descriptor = -1};
}

bool probe_channel_has_unsent(const struct probe_channel *channel)
{
    return channel->sent < channel->out.length;
}

int probe_channel_flush(struct probe_channel *channel)
{
    while (probe_channel_has_unsent(channel)) {
        ssize_t sent = send(channel->descriptor, channel->out.bytes + channel->sent,
                            channel->out.length - channel->sent, MSG_NOSIGNAL);

        if (sent >= 0)
            channel->sent += (size_t)sent;
        else if (errno == EAGAIN)
            return 0;
        else if (errno != EINTR)
            return BERTH_ERROR_IO;
    }
    text_clear(&channel->out);
    channel->sent = 0;
    return 0;
}

int probe_channel_send(struct probe_channel *channel, const void *bytes, size_t length)
{
    unsigned char header[LENGTH_SIZE];

    if (length > PROBE_CHANNEL_PACKET_MAX)
        return BERTH_ERROR_LIMIT;
    tagged_put(header, length, sizeof(header));
    text_append_bytes(&channel->out, header, sizeof(header));
    text_append_bytes(&channel->out, bytes, length);
    return text_failed(&channel->out) ? BERTH_ERROR_MEMORY : probe_channel_flush(channel);
}

/* Drops the packet that was returned last. */
static void drop_packet(struct probe_channel *channel)
{
    size_t rest = channel->in.length - channel->taken;

    if (channel->taken == 0)
        return;
    if (rest > 0)
        memmove(channel->in.bytes, channel->in.bytes + channel->taken, rest);
    channel->in.length = rest;
    channel->taken = 0;
}

/* Returns 1 and the length if a whole packet has arrived, 0 if not, or BERTH_ERROR_LIMIT. */
static int find_packet(const struct probe_channel *channel, size_t *ret_length)
{
    uint64_t length;

    if (channel->in.length < LENGTH_SIZE)
        return 0;
    length = tagged_get((const unsigned char *)channel->in.bytes, LENGTH_SIZE);
    if (length > PROBE_CHANNEL_PACKET_MAX)
        return BERTH_ERROR_LIMIT;
    *ret_length = length;
    return channel->in.length - LENGTH_SIZE >= length;
}

int probe_channel_receive(struct probe_channel *channel, const unsigned char **ret_bytes,
                          size_t *ret_length)
{
    size_t length = 0;
    int code;

    drop_packet(channel);
    while ((code = find_packet(channel, &length)) == 0) {
        char *place = text_reserve(&channel->in, READ_SIZE);
        ssize_t got;

        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        got = recv(channel->descriptor, place, READ_SIZE, 0);
        text_commit(&channel->in, got > 0 ? (size_t)got : 0);
        if (got == 0)
            return BERTH_ERROR_IO;
        if (got < 0 && errno == EAGAIN)
            return 0;
        if (got < 0 && errno != EINTR)
            return BERTH_ERROR_IO;
    }
    if (code < 0)
        return code;
    *ret_bytes = (const unsigned char *)channel->in.bytes + LENGTH_SIZE;
    *ret_length = length;
    channel->taken = LENGTH_SIZE + length;
    return 1;
}
