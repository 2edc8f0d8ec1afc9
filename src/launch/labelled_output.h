/* SPDX-License-Identifier: Apache-2.0
 *
 * Labels the output of several commands: each line starts with the number of its command and a
 * colon. The commands write into pipes. Whole lines are copied from there to this process's
 * standard output and standard error. An incomplete last line gets a newline. A line longer than
 * LABELLED_LINE_MAX is broken into several.
 *
 * A slow reader slows down the commands, as without labels, but not this process: only
 * labelled_output_finish blocks. When the reader is gone, the pipes are closed, so that the
 * commands notice as they would without labels.
 */
#ifndef LAUNCH_LABELLED_OUTPUT_H
#define LAUNCH_LABELLED_OUTPUT_H

#include <berth/error.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/supervise.h"

#define LABELLED_LINE_MAX 65536

struct labelled_output;

struct labelled_output_options {
    uint32_t count;   /* number of commands */
    uint32_t numbers; /* the numbers in labels are below this */
    int output;       /* descriptors to write to */
    int error;
};

/* Creates the labels without any pipes. Fails with BERTH_ERROR_MEMORY. */
int labelled_output_create(const struct labelled_output_options *facts,
                           struct labelled_output **ret_labels, struct berth_error *error);

/* Creates the pipes of the next command and sets them in the copy, which the caller starts then. If
 * this process has no standard output or error, the copy gets none either. Fails with
 * BERTH_ERROR_LIMIT. */
int labelled_output_open_pipes(struct labelled_output *labels, uint32_t number,
                               struct launch_copy *copy, struct berth_error *error);
/* Closes the copy's ends of the pipes, after the copy was started or failed to start. */
void labelled_output_close_child_ends(struct labelled_output *labels);
/* Closes all pipes, in a forked process that does not use them. */
void labelled_output_abandon(struct labelled_output *labels);

/* Returns the maximum number of entries that labelled_output_fill_poll fills in. */
size_t labelled_output_poll_max(const struct labelled_output *labels);
/* Fills in the entries to poll next. Returns their number. */
size_t labelled_output_fill_poll(struct labelled_output *labels, struct pollfd *polls);
/* Reads and writes according to the results of the poll. Does not block. */
void labelled_output_process(struct labelled_output *labels, const struct pollfd *polls);

/* Reads the rest of the output from the pipes, after the commands have ended. With `hurry`,
 * labelled_output_finish gives up on a reader that does not read for a while. */
void labelled_output_drain_pipes(struct labelled_output *labels, bool hurry);

/* Writes the rest of the output, waiting for the reader, and frees everything. Fails with
 * BERTH_ERROR_IO or _MEMORY if output was lost, but not if the reader is gone. NULL does nothing.
 */
int labelled_output_finish(struct labelled_output *labels, struct berth_error *error);

#endif
