/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole packets over a stream socket, each after its length (u32, little-endian). Never blocks:
 * what finds no room is kept until there is some.
 */
#ifndef PROBE_PROBE_CHANNEL_H
#define PROBE_PROBE_CHANNEL_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

/* A longer packet is refused: 64 devices with all that is known of them take some 100 KiB. */
#define PROBE_CHANNEL_PACKET_MAX (16 * 1024 * 1024)

struct probe_channel {
    int descriptor;
    struct text in; /* what has come of the next packets */
    size_t taken;   /* of that: the packet that was handed out last */
    struct text out;
    size_t sent; /* of that */
};

/* Takes over the descriptor, which is made non-blocking. */
void probe_channel_init(struct probe_channel *channel, int descriptor);
/* Closes the descriptor, if it is not -1. */
void probe_channel_finish(struct probe_channel *channel);

/* Sends a packet, or keeps it until probe_channel_flush. Returns 0, BERTH_ERROR_IO (nobody is at
 * the other end), _LIMIT or _MEMORY. */
int probe_channel_send(struct probe_channel *channel, const void *bytes, size_t length);
/* Sends what is kept, as far as there is room. Returns as probe_channel_send. */
int probe_channel_flush(struct probe_channel *channel);
bool probe_channel_has_unsent(const struct probe_channel *channel);

/* The next packet that has come: returns 1 with *ret_bytes, good until the next call; 0 when there
 * is none yet; BERTH_ERROR_IO, _LIMIT (one that is too long) or _MEMORY. */
int probe_channel_receive(struct probe_channel *channel, const unsigned char **ret_bytes,
                          size_t *ret_length);

#endif
