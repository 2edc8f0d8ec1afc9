/* SPDX-License-Identifier: Apache-2.0
 *
 * A descriptor of ours that is written to without ever blocking on who reads, though others share
 * it and expect it to block.
 */
#ifndef LAUNCH_OUTPUT_QUEUE_H
#define LAUNCH_OUTPUT_QUEUE_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/text/text.h"

struct sink {
    int descriptor; /* one's own where that could be had */
    bool is_open;
    bool is_own; /* a file description of our own, which does not block */
    mode_t mode; /* what kind of file it is */
    dev_t device;
    ino_t inode;
    struct text pending; /* what is to be written */
    size_t written;      /* of that */
    int failure;         /* an errno: nothing more can be written; 0: none */
};

/* It stays closed when commands would not inherit the descriptor: it is not open, or close-on-exec.
 */
void sink_open(struct sink *sink, int descriptor);
/* Drops what was not written. */
void sink_close(struct sink *sink);

/* Whether the descriptor is of the same file. */
bool sink_is(const struct sink *sink, int descriptor);
bool sink_is_open(const struct sink *sink);
/* Whether more should be made to wait here. */
bool sink_has_room(const struct sink *sink);

/* What to poll for: nothing, as long as nothing waits. */
struct pollfd sink_ask(const struct sink *sink);
/* Writes a part, after the poll has answered. */
void sink_write(struct sink *sink);
/* Takes no more, for this reason; the first counts. */
void sink_fail(struct sink *sink, int failure);

#endif
