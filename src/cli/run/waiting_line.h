/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows on standard error why a claim waits: one line that updates itself on a terminal, a line per
 * change with --verbose or on a simple terminal, nothing otherwise.
 */
#ifndef CLI_RUN_WAITING_LINE_H
#define CLI_RUN_WAITING_LINE_H

#include "base/system/user_names.h"
#include "cli/claim.h"

enum waiting_style {
    WAITING_SILENT,
    WAITING_LINE,  /* one line that updates itself */
    WAITING_LINES, /* a new line per change */
};

struct waiting_line {
    enum waiting_style style;
    int64_t since;    /* when the wait began; 0: not yet */
    bool drawn;       /* the line is on the screen and must be cleared */
    struct text last; /* the last line printed, without times */
    struct user_names users;
};

/* Chooses the style by `verbose` and by the kind of stderr. The caller finishes it. */
void waiting_line_init(struct waiting_line *line, bool verbose);

/* Clears the line if it is on the screen. */
void waiting_line_finish(struct waiting_line *line);

/* Returns a listener for the claim that updates the line. The line must outlive the listener. */
struct claim_listener waiting_line_listener(struct waiting_line *line);

/* The parts of a waiting line. */
struct waiting_line_parts {
    const struct wire_message *waiting;
    struct user_names *users;
    int64_t so_far; /* nanoseconds */
    bool times;     /* show the estimate and the waiting time */
};

/* Appends "berth: waiting, 3rd of 5, starts in about 12m (1m20s so far): needs 2: ann holds 6". */
void waiting_line_describe(const struct waiting_line_parts *parts, struct text *out);

/* Appends the part of the string that fits into `columns` columns; 0: all. */
void waiting_line_append_cut(const char *string, size_t columns, struct text *out);

#endif
