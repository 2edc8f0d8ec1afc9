/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets over a stream socket. A packet is its length (u32, little-endian) and its bytes. Never
 * blocks: bytes that cannot be sent now are kept.
 */
#ifndef PROBE_PROBE_CHANNEL_H
#define PROBE_PROBE_CHANNEL_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

/* A longer packet is refused. 64 devices with all their facts take about 100 KiB. */
#define PROBE_CHANNEL_PACKET_MAX (16 * 1024 * 1024)

struct probe_channel {
    int descriptor;
    struct text in; /* received bytes */
    size_t taken;   /* length of the packet that was returned last, at the beginning of `in` */
    struct text out;
    size_t sent; /* number of bytes of `out` that were sent */
};

/* Takes over the descriptor and makes it non-blocking. */
void probe_channel_init(struct probe_channel *channel, int descriptor);
/* Closes the descriptor, if it is not -1. */
void probe_channel_finish(struct probe_channel *channel);

/* Sends a packet, or keeps it until probe_channel_flush(). Returns 0, BERTH_ERROR_IO (the other end
 * is closed), _LIMIT or _MEMORY. */
int probe_channel_send(struct probe_channel *channel, const void *bytes, size_t length);
/* Sends as many of the kept bytes as possible. Returns like probe_channel_send(). */
int probe_channel_flush(struct probe_channel *channel);
bool probe_channel_has_unsent(const struct probe_channel *channel);

/* Gets the next packet. Returns 1 with *ret_bytes, valid until the next call; 0 if there is none
 * yet; or BERTH_ERROR_IO, _LIMIT (the packet is too long) or _MEMORY. */
int probe_channel_receive(struct probe_channel *channel, const unsigned char **ret_bytes,
                          size_t *ret_length);

#endif
