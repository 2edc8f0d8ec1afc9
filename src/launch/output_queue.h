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

struct output_queue {
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
void output_queue_open(struct output_queue *queue, int descriptor);
/* Drops what was not written. */
void output_queue_close(struct output_queue *queue);

/* Whether the descriptor is of the same file. */
bool output_queue_is_same_file(const struct output_queue *queue, int descriptor);
bool output_queue_is_open(const struct output_queue *queue);
/* Whether more should be made to wait here. */
bool output_queue_has_room(const struct output_queue *queue);

/* What to poll for: nothing, as long as nothing waits. */
struct pollfd output_queue_poll_entry(const struct output_queue *queue);
/* Writes a part, after the poll has answered. */
void output_queue_write(struct output_queue *queue);
/* Takes no more, for this reason; the first counts. */
void output_queue_fail(struct output_queue *queue, int failure);

#endif
