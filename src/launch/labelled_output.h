/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of several commands, line by line, each with the number of who wrote it: " 3: line". The
 * commands write into pipes; what comes out of them goes on to our own standard output and error,
 * each to its own, whole lines at a time. A last line that does not end is given an end; one longer
 * than LABELS_LINE_MAX is broken into several.
 *
 * Who reads slowly slows the commands down, as without labels, but never us: nothing here blocks,
 * but for labels_finish. When nobody reads any more, the pipes are closed, so that the commands
 * find out as they would without labels.
 */
#ifndef LAUNCH_LABELLED_OUTPUT_H
#define LAUNCH_LABELLED_OUTPUT_H

#include <berth/error.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/supervise.h"

#define LABELS_LINE_MAX 65536

struct labels;

struct labels_facts {
    uint32_t count;   /* of commands */
    uint32_t numbers; /* theirs are below this */
    int output;       /* where standard output and error go: ours */
    int error;
};

/* Fails with BERTH_ERROR_MEMORY. */
int labels_create(const struct labels_facts *facts, struct labels **ret_labels,
                  struct berth_error *error);

/* Makes the pipes of the next command and points the copy to them; the copy is to be started then.
 * What we have not got, it has not got either. Fails with BERTH_ERROR_LIMIT. */
int labels_begin(struct labels *labels, uint32_t number, struct launch_copy *copy,
                 struct berth_error *error);
/* The copy has been started, or not: closes its ends of the pipes. */
void labels_began(struct labels *labels);
/* In a process that was forked and goes on by itself: closes all pipes. */
void labels_abandon(struct labels *labels);

/* How many entries labels_ask fills in at most. */
size_t labels_poll_max(const struct labels *labels);
/* Fills in what is to be polled next. Returns how many entries. */
size_t labels_ask(struct labels *labels, struct pollfd *polls);
/* Does what can be done now, by what the poll said of them. */
void labels_turn(struct labels *labels, const struct pollfd *polls);

/* The commands have ended: reads what they left in the pipes. With `hurry`, whoever does not read
 * for a while is not waited for any longer. */
void labels_collect(struct labels *labels, bool hurry);

/* Writes what is left, waiting for whoever reads, and ends the whole. Returns 0, or BERTH_ERROR_IO
 * or _MEMORY when something was lost, unless because nobody reads any more. NULL does nothing. */
int labels_finish(struct labels *labels, struct berth_error *error);

#endif
