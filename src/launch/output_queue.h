/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes to a descriptor without blocking on a slow reader, although other processes share the
 * descriptor and expect it to block.
 */
#ifndef LAUNCH_OUTPUT_QUEUE_H
#define LAUNCH_OUTPUT_QUEUE_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/text/text.h"

struct output_queue {
    int descriptor;
    bool is_open;
    bool is_own; /* the descriptor was opened again, with O_NONBLOCK */
    mode_t mode; /* type of the file */
    dev_t device;
    ino_t inode;
    struct text pending; /* bytes to write */
    size_t written;      /* number of these bytes already written */
    int failure;         /* errno that ended writing; 0: none */
};

/* Opens the queue. It stays closed if commands would not inherit the descriptor: it is not open, or
 * close-on-exec. */
void output_queue_open(struct output_queue *queue, int descriptor);
/* Closes the queue and drops unwritten bytes. */
void output_queue_close(struct output_queue *queue);

/* Returns true if the descriptor refers to the same file. */
bool output_queue_is_same_file(const struct output_queue *queue, int descriptor);
bool output_queue_is_open(const struct output_queue *queue);
/* Returns true if the queue accepts more bytes. */
bool output_queue_has_room(const struct output_queue *queue);

/* Returns the entry to poll. Its descriptor is -1 if there is nothing to write. */
struct pollfd output_queue_poll_entry(const struct output_queue *queue);
/* Writes a part of the queue. Call it after poll() has reported the descriptor. */
void output_queue_write(struct output_queue *queue);
/* Ends writing because of this errno, and drops unwritten bytes. The first errno is kept. */
void output_queue_fail(struct output_queue *queue, int failure);

#endif
