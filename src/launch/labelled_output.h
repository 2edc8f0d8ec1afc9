/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of several commands, line by line, each with the number of who wrote it: " 3: line". The
 * commands write into pipes; what comes out of them goes on to our own standard output and error,
 * each to its own, whole lines at a time. A last line that does not end is given an end; one longer
 * than LABELLED_LINE_MAX is broken into several.
 *
 * Who reads slowly slows the commands down, as without labels, but never us: nothing here blocks,
 * but for labelled_output_finish. When nobody reads any more, the pipes are closed, so that the
 * commands find out as they would without labels.
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
    uint32_t count;   /* of commands */
    uint32_t numbers; /* theirs are below this */
    int output;       /* where standard output and error go: ours */
    int error;
};

/* Fails with BERTH_ERROR_MEMORY. */
int labelled_output_create(const struct labelled_output_options *facts,
                           struct labelled_output **ret_labels, struct berth_error *error);

/* Makes the pipes of the next command and points the copy to them; the copy is to be started then.
 * What we have not got, it has not got either. Fails with BERTH_ERROR_LIMIT. */
int labelled_output_open_pipes(struct labelled_output *labels, uint32_t number,
                               struct launch_copy *copy, struct berth_error *error);
/* The copy has been started, or not: closes its ends of the pipes. */
void labelled_output_close_child_ends(struct labelled_output *labels);
/* In a process that was forked and goes on by itself: closes all pipes. */
void labelled_output_abandon(struct labelled_output *labels);

/* How many entries labelled_output_fill_poll fills in at most. */
size_t labelled_output_poll_max(const struct labelled_output *labels);
/* Fills in what is to be polled next. Returns how many entries. */
size_t labelled_output_fill_poll(struct labelled_output *labels, struct pollfd *polls);
/* Does what can be done now, by what the poll said of them. */
void labelled_output_process(struct labelled_output *labels, const struct pollfd *polls);

/* The commands have ended: reads what they left in the pipes. With `hurry`, whoever does not read
 * for a while is not waited for any longer. */
void labelled_output_drain_pipes(struct labelled_output *labels, bool hurry);

/* Writes what is left, waiting for whoever reads, and ends the whole. Returns 0, or BERTH_ERROR_IO
 * or _MEMORY when something was lost, unless because nobody reads any more. NULL does nothing. */
int labelled_output_finish(struct labelled_output *labels, struct berth_error *error);

#endif
